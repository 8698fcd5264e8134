# The CUDA backend: built if nvcc is found (SLUICE_CUDA=auto), always (on) or never (off). The runtime is linked
# statically and finds the driver when it is first used, so that the program starts where there is none.
set(SLUICE_CUDA auto CACHE STRING "the CUDA backend: auto, on or off")
set(SLUICE_CUDA_ARCHS "80;89;90a;100;120" CACHE STRING
  "compute capabilities to make code for; the last one also as PTX, for GPUs that come later")
set(SL_CUDA_DIR)
set(SL_CUDA_LIBS)
set(SL_CUDA_PC_LIBS) # for users of the static library, through pkg-config
if(SLUICE_CUDA STREQUAL "off" OR SLUICE_KERNELS_ONLY)
  return()
endif()
find_program(SLUICE_NVCC nvcc PATHS /usr/local/cuda/bin)
if(NOT SLUICE_NVCC)
  if(SLUICE_CUDA STREQUAL "on")
    message(FATAL_ERROR "SLUICE_CUDA is on, but nvcc was not found; put it on the PATH or set SLUICE_NVCC")
  endif()
  return()
endif()

set(CMAKE_CUDA_COMPILER ${SLUICE_NVCC})
set(CMAKE_CUDA_ARCHITECTURES OFF) # flags below: one list for all
set(CMAKE_CUDA_STANDARD 17)
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

set(arch_flags)
foreach(arch IN LISTS SLUICE_CUDA_ARCHS)
  list(APPEND arch_flags "-gencode=arch=compute_${arch},code=sm_${arch}")
endforeach()
list(GET SLUICE_CUDA_ARCHS -1 last)
if(NOT last MATCHES "a$")
  list(APPEND arch_flags "-gencode=arch=compute_${last},code=compute_${last}")
endif()

# Numbers: no contraction but where the code says so.
file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cuda/kernels/*.cu)
add_library(sl_kernels_cuda OBJECT ${kernels})
target_include_directories(sl_kernels_cuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(sl_kernels_cuda PRIVATE ${arch_flags} -fmad=false -O3 -lineinfo
  "SHELL:-Xcompiler -Wall,-Wextra,-fvisibility=hidden,-fno-exceptions,-fno-rtti")
if(SLUICE_WERROR)
  target_compile_options(sl_kernels_cuda PRIVATE "SHELL:-Werror all-warnings")
endif()
set_target_properties(sl_kernels_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_RUNTIME_LIBRARY None)
set_property(GLOBAL APPEND PROPERTY SL_KERNEL_OBJECTS $<TARGET_OBJECTS:sl_kernels_cuda>)
set(SL_CUDA_DIR backend/cuda)
set(SL_CUDA_LIBS CUDA::cudart_static)
set(SL_CUDA_PC_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -ldl -lstdc++")
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/backend/registry.c PROPERTIES COMPILE_DEFINITIONS SL_CUDA)
