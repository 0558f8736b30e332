# What README shows. Everything is built once, in the development profile (see Cargo.toml), and always for the whole
# workspace: for one crate alone its dependencies have other features, and would be compiled anew.

.PHONY: demo farm-demo edge-demo npu-demo npu-test agent agent-test test slow-test postgres-test web-screenshots fuzz bench deny dist dist-test analysis-report

demo: ## Times, accuracy, a plan and its proof on simulated phones, and a page of all of it; OPEN=1 opens it in a browser
	cargo build --workspace --bin layerlab --bin layerlab-agent
	target/debug/layerlab demo --out target/demo --replace $(if $(OPEN),--open)

farm-demo: ## Plug three virtual phones in (real adbd, real adb server) and profile on all of them at once
	cargo build --bins
	tests/farm-demo target/farm-demo

edge-demo: ## Plug a virtual phone in, put an edge server beside it, measure the link, plan, and run the plan on both
	cargo build --workspace --bins
	tests/edge-demo target/edge-demo

npu-demo: ## Profile, quantise, evaluate and plan on Qualcomm's emulated Hexagon; installs two wheels from PyPI beside the build
	cargo build --workspace --bins
	tests/npu-demo target/npu-demo

npu-test: ## The tests that need ONNX Runtime and Qualcomm's emulator, which it installs beside the build
	tests/npu-test

ABI ?= arm64-v8a x86_64
AGENTS ?= $(or $(LAYERLAB_DATA),$(or $(XDG_DATA_HOME),$(HOME)/.local/share)/layerlab)/agents

agent: ## Build agents for phones, static ones; ABI=armeabi-v7a chooses others; ANDROID=1 needs the NDK, for ones that load a phone's libraries
	packaging/agents "$(AGENTS)" $(if $(ANDROID),--android) $(ABI)

agent-test: ## The tests that need agents for phones, which it builds first: a virtual phone runs that for arm64 by an emulator
	tests/agent-test

test: ## All tests but those that take minutes, also after one of them failed, and how many there were; those of the crates alone: cargo test
	tests/run

slow-test: ## The tests that take minutes: hundreds of networks planned and split against all that could be, long models cut at every layer, adbd killed 20 times, a phone unplugged 50 times, servers that hang, placements run, barriers looked for on each page of the web, the daemon killed 100 times, also while its disk fills up and with its store on PostgreSQL, and four hosts with all that they share
	tests/s3-server/folder-server target/s3s-fs
	cargo build --bins
	cargo test --workspace --quiet --no-fail-fast -- --ignored --skip arm64::

postgres-test: ## Those of them with a store on PostgreSQL: thirty nights, the daemon killed 100 times, a host cut off for five minutes, four hosts and all that they share killed 200 times; needs the package postgresql
	tests/s3-server/folder-server target/s3s-fs
	cargo build --bins
	cargo test --workspace --quiet --no-fail-fast -- --ignored on_a_server

web-screenshots: ## Pictures of each page of the lab on the web, in target/web-screenshots; needs Chromium and its driver
	cargo build --workspace --bins
	cargo tool web-screenshots target/web-screenshots

INPUTS ?= 1000000

fuzz: ## Feed readers with damaged files, INPUTS=1000000 of each kind: models, messages, journals, profiles, devices, jobs
	cargo build --workspace --bins
	target/debug/fuzz $(INPUTS)

analysis-report: ## Ten million samples in Parquet: how large, and how long queries take (tests/reports/analysis.md); installs three wheels from PyPI
	cargo build --workspace --bins
	tests/analysis/wheels target/analysis
	PYTHONPATH=target/analysis python3 tests/analysis/report.py target/debug 10000000 > target/analysis.md
	mv target/analysis.md tests/reports/analysis.md

PROFILE ?= release

dist: ## A Debian package and a tarball in target/dist; PROFILE=dev packs the development build; needs cargo-deb
	packaging/dist $(PROFILE)

dist-test: ## Install, use and remove what make dist made, in an empty root; needs to be root on a Debian
	packaging/test

deny: ## Look whether all dependencies may be there: their licences, where they come from, and what is known to be unsafe
	.ci/deny

bench: ## Benchmarks of the arithmetic, of reading and writing profiles, of planning and of the lab's decisions
	cargo bench --workspace --bench profile --bench adaptive --bench planners --bench edge --bench video --bench lab
