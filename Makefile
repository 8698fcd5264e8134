# The front door. What is behind it: CMake (CMakeLists.txt, CMakePresets.json) and tools/.
BUILD ?= build
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
PROMPT ?= Why is the sky blue? Answer in two sentences.

help:
	@echo "make demo     install what is missing, build, fetch a small model, generate"
	@echo "make test     the same, and run all tests (SLUICE_TEST_MODELS=all: with all four models)"
	@echo "make quick    build and run the tests that take seconds"
	@echo "make build    build only"
	@echo "make check    layers, symbols, instruction sets, sizes, form"
	@echo "make format   lay out all C files by .clang-format (clang-format 14)"
	@echo "make clean    remove $(BUILD)/"

build:
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(CMAKE_FLAGS)
	ninja -C $(BUILD) -j $(JOBS) $(TARGETS)

demo:
	tools/install_deps.sh build
	$(MAKE) --no-print-directory build TARGETS=sluice_bin
	python3 tools/fetch_models.py smollm2
	@model=`python3 tools/fetch_models.py --path smollm2`; \
	echo "\$$ $(BUILD)/apps/sluice run $$model -p \"$(PROMPT)\" --temp 0 -n 128"; \
	$(BUILD)/apps/sluice run "$$model" -p "$(PROMPT)" --temp 0 -n 128

test:
	tools/install_deps.sh test
	$(MAKE) --no-print-directory build
	python3 tools/fetch_models.py $(if $(filter all,$(SLUICE_TEST_MODELS)),all peer,smollm2)
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure

quick: build
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure -L "unit|kernel|fuzz|fault|check"

check: build
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure -L check

format:
	find src apps examples include tests bench tools -name '*.[ch]' ! -name '*_tab.*' -exec clang-format-14 -i {} +

clean:
	rm -rf $(BUILD)

.PHONY: help build demo test quick check format clean
