# The workshop of Backstage: everything here needs Go, make, a POSIX shell and the
# Go module proxy, and the tests need brokers' programs (CONTRIBUTING.md says which).
# Every target says what it does as it runs, and a step that fails is named;
# `make -k test` goes on after a failure.

# The linter, pinned: a new release must not turn an old commit red.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Every module of the repository: this one, and those in folders of their own.
MODULES := $(shell find . -name go.mod -not -path '*/testdata/*' -not -path './.*/*' -exec dirname {} \; | sort)

# How many packages are tested at once. Tests of leases measure time: they need a
# share of a core, whatever the machine's load.
PARALLEL := 2

# How many tests of one package the soak runs at once: most of them wait for a lease.
WAITING := 8

# TESTFLAGS goes to every go test, for example: make unit TESTFLAGS=-v
TESTFLAGS :=
# ORDERS goes to the demo: make demo ORDERS=my-orders.jsonl
ORDERS :=

# STEP begins a recipe: it says what the step does, in the words of `make help`, and
# at the end how long it took or that it failed. Each recipe is one shell.
STEP = set -eu; began=$$(date +%s); \
	trap 'code=$$?; if [ $$code -eq 0 ]; then echo "== $@: ok in $$(($$(date +%s) - began)) s"; else echo "== $@: FAILED (alone: make $@)" >&2; fi; exit $$code' EXIT; \
	printf '\n== %s ' '$@'; sed -n 's/^$@:.*\#\# //p' Makefile

# RACE sets race to -race where programs can be built with it.
RACE = race=-race; go build -race runtime/cgo 2>/dev/null || \
	{ race=; echo '   no C compiler (or no race detector for this system): the tests run WITHOUT -race'; }

# BROKERS goes before a command that needs real brokers: it starts them, sets the
# environment by which tests find them, and takes them down when the command has ended.
# A program that is installed is used, else Docker, else packages are installed as root.
BROKERS = go run ./internal/brokers/run --

# $(call each,COMMAND) runs a command in every module.
each = for module in $(MODULES); do echo "   $(1)   (module $$module)"; (cd $$module && $(1)); done

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help test demo soak soak-tests brokers brokers-down lint fmt vet vet-darwin vet-windows staticcheck rules unit unit-tests bench generate golden tidy

help: ## lists the targets
	@echo 'Backstage: typed, durable tasks for Go. Targets:'; echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | \
		while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

# --- what users and continuous integration run

test: fmt vet vet-darwin vet-windows staticcheck unit ## checks everything: the steps fmt, vet, vet-darwin, vet-windows, staticcheck, unit
	@printf '\n== test: all steps are ok\n'

demo: ## runs the quickstart: orders, a retry, a dead letter, a worker that is killed (ORDERS=file takes yours)
	@$(STEP); go run ./examples/quickstart $(if $(ORDERS),-orders '$(ORDERS)')

soak: ## runs the long forms of the tests, and every provider's suite many times, with real brokers; ends within an hour
	@$(STEP); $(BROKERS) $(MAKE) --no-print-directory soak-tests

soak-tests: ## is what soak does once the brokers are up; alone, the tests that need one are skipped
	@$(STEP); $(RACE); end=$$((began + 3500)); \
	left() { seconds=$$((end - $$(date +%s))); [ $$seconds -gt 0 ] || { echo "   the hour is over before $$1" >&2; exit 1; }; }; \
	echo '   the suite of every provider, in a row: 20 times without a broker, 10 with one, 5 with Kafka (its kills come after)'; \
	for package in $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./providers/...); do \
		left "$$package"; \
		case $$package in */kafka*) times=5;; */redisstreams*|*/rabbitmq*) times=10;; *) times=20;; esac; \
		go test $$race -count=$$times -parallel $(WAITING) -run '^TestProvider$$' -skip 'TestProvider/.*/kill' -timeout $${seconds}s $(TESTFLAGS) $$package; \
	done; \
	echo '   the long forms (BACKSTAGE_SOAK=1), one package after the other'; \
	for package in $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do \
		left "$$package"; \
		BACKSTAGE_SOAK=1 go test $$race -count=1 -parallel $(WAITING) -timeout $${seconds}s $(TESTFLAGS) $$package; \
	done

brokers: ## starts the brokers for tests, leaves them up, and prints the environment that go test needs, for eval
	@go run ./internal/brokers/run up

brokers-down: ## takes down what make brokers left up
	@go run ./internal/brokers/run down

# --- the steps of test

lint: fmt vet staticcheck rules ## checks how the code is written: the steps fmt, vet, staticcheck, rules

fmt: ## names the Go files that gofmt would change
	@$(STEP); gofmt=$$(command -v gofmt || echo "$$(go env GOROOT)/bin/gofmt"); \
	wrong=$$(find . -name '*.go' -not -path '*/testdata/*' -not -path './.*/*' -exec "$$gofmt" -l {} +); \
	if [ -n "$$wrong" ]; then echo "not formatted (gofmt -w mends it):"; echo "$$wrong"; exit 1; fi

vet: ## looks for mistakes with go vet, in every module
	@$(STEP); $(call each,go vet ./...)

vet-darwin: ## does the same as on macOS: whatever builds for one system only is seen there
	@$(STEP); export GOOS=darwin CGO_ENABLED=0; $(call each,go vet ./...)

vet-windows: ## does the same as on Windows
	@$(STEP); export GOOS=windows CGO_ENABLED=0; $(call each,go vet ./...)

staticcheck: ## looks for mistakes with staticcheck, pinned, in every module (staticcheck.conf)
	@$(STEP); $(call each,go run $(STATICCHECK) ./...)

rules: ## holds the repository to its own rules: who imports whom, what is documented, how long things may get
	@$(STEP); go test -count=1 ./internal/rules

unit: ## runs all tests of every module with real brokers, and the race detector where there is a C compiler
	@$(STEP); $(RACE); \
	echo '   compiling first (SQLite in pure Go takes its time), so that no test measures a compiler'; \
	$(call each,go build $$race -o /dev/null ./...); \
	$(BROKERS) $(MAKE) --no-print-directory unit-tests

unit-tests: ## is what unit does once the brokers are up; alone, the tests that need one are skipped
	@$(STEP); $(RACE); \
	$(call each,go test $$race -vet=off -p $(PARALLEL) -timeout 15m $(TESTFLAGS) ./...)

# --- for those who change things

bench: ## measures against bare loops and peers, as ratios within one run: every program of module bench/
	@$(STEP); cd bench; missed=; for program in $$(go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./...); do \
		echo "   go run $$program"; go run "$$program" || missed="$$missed $$program"; \
	done; \
	[ -z "$$missed" ] || { echo "   not measured, for the reasons above:$$missed" >&2; exit 1; }

generate: golden ## generates what is generated: golden trees, then go generate in every module
	@$(STEP); $(call each,go generate ./...)

golden: ## rewrites the golden trees and errors from their schemas (go test -update); read the diff
	@$(STEP); for folder in $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n 1 dirname | sort -u); do \
		echo "   $$folder"; (cd $$folder && go test -count=1 . -update); \
	done

tidy: ## says what go mod tidy would change, in every module, and changes nothing
	@$(STEP); $(call each,go mod tidy -diff)
