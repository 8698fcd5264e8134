// SPDX-License-Identifier: MIT
//
// Names of kernels that are compiled once per level: SL_KERNEL(sl_cpu_norm) is sl_cpu_norm_avx2 and
// so on. SL_ISA comes from the build.
#ifndef SL_BACKEND_CPU_ISA_H
#define SL_BACKEND_CPU_ISA_H

#ifndef SL_ISA
#error "this file is compiled once per level, with -DSL_ISA=<level>"
#endif

#define SL_KERNEL_PASTE_(name, isa)  name##_##isa
#define SL_KERNEL_EXPAND_(name, isa) SL_KERNEL_PASTE_(name, isa)
#define SL_KERNEL(name)              SL_KERNEL_EXPAND_(name, SL_ISA)

#define SL_TEXT_(isa)        #isa
#define SL_TEXT_EXPAND_(isa) SL_TEXT_(isa)
#define SL_ISA_NAME          SL_TEXT_EXPAND_(SL_ISA)

#endif
