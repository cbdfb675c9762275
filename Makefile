# Holdfast. Each target is one readable line of work; `make help` lists them.
GO ?= go
BIN := bin/holdfast
# Packages whose tests also run under the race detector: those that share memory between goroutines.
RACE := ./zk/... ./hbase/... ./hbasetest ./minihbase/... ./internal/rpc/... ./internal/route/... ./internal/health/... ./internal/session/... ./internal/embed/... ./internal/console/...
SIEGETIME ?= 400ms

# Pure Go: one static binary, and nothing to compile but Go (the race detector alone needs cgo).
export CGO_ENABLED ?= 0

.PHONY: help build demo test unit race siege fuzz fuzz-listeners test-browser random crash interop interop-long lint bench bench-peers generate clean
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "%-12s %s\n", $$1, $$2}'

build: ## the one binary, bin/holdfast
	$(GO) build -trimpath -o $(BIN) ./cmd/holdfast

demo: build ## embedded cluster, load, a move, a split and a kill; verdict and holdfast-demo.html
	$(BIN) demo

test: unit race siege ## everything that needs only Go; under 5 minutes on 2 cores

unit:
	$(GO) test ./...

race:
	CGO_ENABLED=1 $(GO) test -race -short -vet=off $(RACE)

siege: ## a siege of each listener, SIEGETIME each (what reads foreign bytes meets spoilt ones in unit, internal/spoil)
	$(GO) run ./internal/tools/fuzzall -listeners all -time $(SIEGETIME) -crowd 500

fuzz: ## every fuzz target for five minutes
	$(GO) run ./internal/tools/fuzzall -time 5m

fuzz-listeners: ## siege of the RPC, ZooKeeper and control listeners of a running cluster, ten minutes each
	$(GO) run ./internal/tools/fuzzall -listeners all -time 10m

test-browser: ## the console in a headless Chromium (an installed one, or what CHROMIUM names); pictures into SHOTS
	$(GO) test -tags browser -run Browser -count 1 ./internal/console -args $(if $(SHOTS),-shots $(abspath $(SHOTS)))

random: ## the random tests of make test, which takes the same seeds each time, with new ones, ten times
	$(GO) test -count 10 -run 'Linearizable|AgainstModel|Chaos|Histories|Crash|Model' ./hbase ./minihbase ./internal/metamorph ./internal/embed/store -args -seed 0
	$(GO) test -count 10 -run 'Against' ./internal/route -args -rapid.seed 0

crash: ## kill -9 of the whole process a hundred times under load, each time in the middle of something else (5 min)
	$(GO) test -tags long -run Kill9 -v -timeout 40m ./cmd/holdfast

interop: ## real HBase, its shell and Java client, real ZooKeeper (JDK 17, Maven, Python 3, Node)
	interop/run

interop-long: ## what takes minutes more: all recorded cases, transcripts, answers and HFiles on real HBase
	interop/run -tags interop,long -run 'Vectors|Reads|Loads|RealHBase' ./interop/conformance ./interop/hfile ./interop/guests ./interop/admin

lint: ## gofmt, vet, staticcheck and the rules of this house
	@test -z "$$(gofmt -l cmd doctor examples hbase hbasetest internal interop minihbase zk)" || { gofmt -l cmd doctor examples hbase hbasetest internal interop minihbase zk; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags interop,long ./interop/... ./cmd/...
	$(GO) vet -tags browser ./internal/console
	$(GO) tool staticcheck ./...
	$(GO) run ./internal/tools/lint

bench: build ## route hits, then benchmarks beside the peers, as ratios
	$(GO) test -run XXX -bench "Lookup|Heap" ./internal/route
	interop/run -bench "Lone|Embedded|Callers|Up" -benchtime 1x -run XXX -v ./interop/bench

bench-peers: ## the client beside HBase's Java client on one real HBase, and holdfast up beside HBase standalone (20 min)
	interop/run -bench "Peers|Stall" -benchtime 1x -run XXX -v -timeout 45m ./interop/bench

generate: ## everything that is generated
	$(GO) generate ./...

clean:
	rm -rf bin .peers holdfast-demo.html holdfast-data
