# What each target does: "make help". Everything that a target makes lies
# below build/, but for what "make install" puts into ~/.local.

.PHONY: help build install test test-fast lint generate bench soak clean
.DEFAULT_GOAL := help

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-14s%s\n", $$1, $$2 }'

build: ## Build the harness, agentbox and the bundled frontends into build/
	@sh scripts/build.sh

clean: ## Remove build/
	rm -rf build
