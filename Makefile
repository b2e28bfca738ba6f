# "make help" lists the targets. All that they make lies below build/, but for
# what "make install" puts into ~/.local and ~/.config, and Go's and npm's own
# caches.

.PHONY: help build install test test-fast lint generate bench soak clean
.DEFAULT_GOAL := help

# Each tool is built once for each version.
TOOLS := build/tools
GOLANGCI_LINT := $(TOOLS)/golangci-lint@v2.15.0/golangci-lint
BUF := $(TOOLS)/buf@v1.75.0/buf
PROTOC_GEN_GO := $(TOOLS)/protoc-gen-go@v1.36.12/protoc-gen-go
PROTOC_GEN_GO_GRPC := $(TOOLS)/protoc-gen-go-grpc@v1.6.2/protoc-gen-go-grpc

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  %-11s%s\n", $$1, $$2 }'

build: ## Build the harness, agentbox and the bundled frontends into build/
	@sh scripts/build.sh

install: ## Build, and set up this machine for its user
	@sh scripts/install.sh

test: build ## Run every test with the real parts, after installing them
	@sh scripts/test-setup.sh
	@sh scripts/test.sh

test-fast: ## Run the tests that need nothing but Go
	@sh scripts/test.sh -short

lint: $(GOLANGCI_LINT) $(BUF) ## Check formatting, Go, shell and protobuf
	@GOLANGCI_LINT=$(GOLANGCI_LINT) BUF=$(BUF) sh scripts/lint.sh

generate: $(BUF) $(PROTOC_GEN_GO) $(PROTOC_GEN_GO_GRPC) ## Generate the protocol's Go code
	cd sdk/proto && PATH="$(CURDIR)/$(dir $(PROTOC_GEN_GO)):$(CURDIR)/$(dir $(PROTOC_GEN_GO_GRPC)):$$PATH" "$(CURDIR)/$(BUF)" generate

bench: build ## Measure the harness against what it replaces, into bench/RESULTS.md
	@sh scripts/test-setup.sh
	cd bench && HARNESS_TEST_SRT="$(CURDIR)/build/home/.local/bin/srt" go run . -bin ../build

soak: ## Fuzz every target for FUZZTIME, one minute by default
	@sh scripts/soak.sh

clean: ## Remove build/
	rm -rf build

go_install = GOBIN="$(CURDIR)/$(@D)" GOFLAGS= GOWORK=off go install

$(TOOLS)/golangci-lint@%/golangci-lint:
	$(go_install) github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$*
$(TOOLS)/buf@%/buf:
	$(go_install) github.com/bufbuild/buf/cmd/buf@$*
$(TOOLS)/protoc-gen-go@%/protoc-gen-go:
	$(go_install) google.golang.org/protobuf/cmd/protoc-gen-go@$*
$(TOOLS)/protoc-gen-go-grpc@%/protoc-gen-go-grpc:
	$(go_install) google.golang.org/grpc/cmd/protoc-gen-go-grpc@$*
