# What README shows. Everything is built once, in the development profile (see Cargo.toml).

.PHONY: demo test slow-test bench

demo: ## Profile two networks on three simulated phones
	cargo build --quiet --bins
	target/debug/layerlab demo --out target/demo --replace

test: ## All tests
	cargo build --quiet --bins
	cargo test --workspace --quiet

slow-test: ## The tests that take minutes
	cargo build --quiet --bins
	cargo test --package layerlab-tests --quiet -- --ignored

bench: ## Benchmarks of the arithmetic and of reading and writing profiles
	cargo bench -p layerlab-profiles
