# What README shows. Everything is built once, in the development profile (see Cargo.toml), and always for the whole
# workspace: for one crate alone its dependencies have other features, and would be compiled anew.

.PHONY: demo farm-demo npu-demo npu-test agent test slow-test fuzz bench dist dist-test

demo: ## Times, accuracy, a plan and its proof on simulated phones, and a page of all of it; OPEN=1 opens it in a browser
	cargo build --workspace --bin layerlab --bin layerlab-agent
	target/debug/layerlab demo --out target/demo --replace $(if $(OPEN),--open)

farm-demo: ## Plug three virtual phones in (real adbd, real adb server) and profile on all of them at once
	cargo build --bins
	tests/farm-demo target/farm-demo

npu-demo: ## Profile, quantise, evaluate and plan on Qualcomm's emulated Hexagon; installs two wheels from PyPI beside the build
	cargo build --workspace --bins
	tests/npu-demo target/npu-demo

npu-test: ## The tests that need ONNX Runtime and Qualcomm's emulator, which it installs beside the build
	tests/npu-test

ABI ?= arm64-v8a
AGENTS ?= $(or $(LAYERLAB_DATA),$(or $(XDG_DATA_HOME),$(HOME)/.local/share)/layerlab)/agents

agent: ## Build the agent for phones, ABI=arm64-v8a or another; needs the Android NDK, cargo-ndk and the Rust target
	cargo ndk --target $(ABI) --platform 26 build --release --package layerlab-agent --bin layerlab-agent
	install -D -m 755 target/$(TRIPLE_$(ABI))/release/layerlab-agent $(AGENTS)/$(ABI)/layerlab-agent

TRIPLE_arm64-v8a = aarch64-linux-android
TRIPLE_armeabi-v7a = armv7-linux-androideabi
TRIPLE_x86_64 = x86_64-linux-android
TRIPLE_x86 = i686-linux-android

test: ## All tests, also after one of them failed, and how many there were; those of the crates alone: cargo test
	tests/run

slow-test: ## The tests that take minutes: adbd killed 20 times, a phone unplugged 50 times, servers that hang, placements run, the daemon killed 100 times, also while its disk fills up
	cargo build --bins
	cargo test --workspace --quiet --no-fail-fast -- --ignored

INPUTS ?= 1000000

fuzz: ## Feed readers with damaged files, INPUTS=1000000 of each kind: models, messages, journals, profiles, devices, jobs
	cargo build --workspace --bins
	target/debug/fuzz $(INPUTS)

PROFILE ?= release

dist: ## A Debian package and a tarball in target/dist; PROFILE=dev packs the development build; needs cargo-deb
	packaging/dist $(PROFILE)

dist-test: ## Install, use and remove what make dist made, in an empty root; needs to be root on a Debian
	packaging/test

bench: ## Benchmarks of the arithmetic, of reading and writing profiles, of planning and of the lab's decisions
	cargo bench --workspace --bench profile --bench adaptive --bench planners --bench edge --bench video --bench lab
