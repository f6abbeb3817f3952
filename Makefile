# Everything here works with Go and make alone, but for `race` and `rqlited`, which need a C compiler.

# Where the commit is known, the binary says which one it is; `dts serve` also uses its date, to tell when the
# machine's clock is wrong. +dirty: the source is not what that commit has. Elsewhere the source's own values stand.
VERSION := $(shell git describe --tags --match 'v*' --dirty=+dirty 2>/dev/null)
COMMIT  := $(shell git describe --always --exclude '*' --abbrev=12 --dirty=+dirty 2>/dev/null)
DATE    := $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
STAMP   := $(if $(VERSION),-X main.version=$(VERSION)) $(if $(COMMIT),-X main.commit=$(COMMIT)) $(if $(DATE),-X main.date=$(DATE))
BUILD   := go build -trimpath -buildvcs=false -ldflags "-s -w $(STAMP)"

PLATFORMS := linux-amd64 linux-arm64 linux-arm darwin-arm64
TESTFLAGS ?=
RACE      ?= . ./exec/... ./sched/... ./store/... ./web/...
ROUNDS    ?= 36
HISTORIES ?= 6000
FROM      ?= random
FAULTS    ?= all
STEPS     ?= 100000
FUZZTIME  ?= 10s
CASES     ?= 40000
PREFIX    ?= /usr/local
UNITDIR   ?= /etc/systemd/system

export CGO_ENABLED := 0
export GOAMD64 := v1
export GOARM   := 7
export GOARM64 := v8.0
ifeq ($(HOME),) # Go and npm then have no place for their caches
export npm_config_cache := $(CURDIR)/.cache/npm
export GOPATH  := $(CURDIR)/.cache/go
export GOCACHE := $(CURDIR)/.cache/go-build
export GOFLAGS := -modcacherw
endif

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build run test
build: ## build bin/dts
	$(BUILD) -o bin/dts ./cmd/dts

run: build ## build, and start a server with its data in .data
	bin/dts serve --data .data

# The profile in cmd/dts/default.pgo is for the program; without it tests and vet need no second build of everything.
test: ## run the tests
	@test -x .cache/rqlited || echo 'NOTHING IS TESTED WITH RQLITE, because there is no .cache/rqlited: run make rqlited, once'
	@test -d .cache/croner || echo 'NO SCHEDULES ARE COMPARED WITH CRONER, because there is no .cache/croner: run make croner, once'
	@command -v systemd-analyze >/dev/null || echo 'NO SCHEDULES ARE COMPARED WITH SYSTEMD, because there is no systemd-analyze'
	go test -pgo=off -timeout 10m $(TESTFLAGS) ./...

# The tests with rqlite need its server, which no Linux distribution packages.
RQLITE := github.com/rqlite/rqlite/v8@v8.43.4
.PHONY: rqlited
rqlited: .cache/rqlited ## build .cache/rqlited for the tests, if it is not there (needs a C compiler; a minute or more)
.cache/rqlited:
	mkdir -p .cache && go mod download $(RQLITE) && CGO_ENABLED=1 go build -C "$$(go env GOMODCACHE)/$(RQLITE)" \
	-trimpath -ldflags '-s -w' -o '$(CURDIR)/.cache/rqlited.new' ./cmd/rqlited && mv .cache/rqlited.new .cache/rqlited

.PHONY: race vet staticcheck fmt-check cross
# SQLite is C code in the form of Go: watched too, it is six times as slow, and its memory is its own.
race: ## run the tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -gcflags='modernc.org/...=-race=false -d=checkptr=0' -short -timeout 15m $(RACE)

vet: ## run go vet, for each operating system
	go vet -pgo=off ./...
	GOOS=darwin GOARCH=arm64 go vet -pgo=off ./...

staticcheck: ## run staticcheck
	go tool -modfile=tools.mod staticcheck ./...

fmt-check: ## list files that gofmt would change, and fail if there are any
	@files=$$(gofmt -l *.go .ci */) && test -z "$$files" || { echo "$$files"; exit 1; }

cross: $(PLATFORMS:%=cross-%) ## build for every platform
cross-%:
	GOOS=$(firstword $(subst -, ,$*)) GOARCH=$(lastword $(subst -, ,$*)) $(BUILD) -o bin/dts-$* ./cmd/dts

# The same commit makes the same bytes with the same Go: SOURCE_DATE_EPOCH is the time of the commit. Without git give it, and VERSION.
MAINTAINER ?= The authors of dts <dts@localhost>
.PHONY: packages test-packages
packages: build cross ## build .deb packages and tarballs into bin/packages, with their SHA-256 sums
	@$(MAKE) --no-print-directory share
	go build -C packages -trimpath -o ../bin/make-packages . && SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
	bin/make-packages -version '$(VERSION)' -commit '$(COMMIT)' -maintainer '$(MAINTAINER)' $(PLATFORMS)
	@ls -sh1 bin/packages

.PHONY: share
share: # the manual pages and the completions, made by the program
	rm -rf bin/share && mkdir -p bin/share/completions && bin/dts man --dir bin/share/man1
	bin/dts completion bash >bin/share/completions/dts.bash
	bin/dts completion zsh >bin/share/completions/_dts
	bin/dts completion fish >bin/share/completions/dts.fish

test-packages: ## install bin/packages/*.deb in a copy of this machine (Debian, as root), and use and remove it
	go test -C packages .
	packages/test

.PHONY: cluster test-cluster
cluster: build ## start three dts on three rqlite on this machine, to try what a cluster does
	@init/cluster

# FAULTS is of `make faults`, too, where its default has another meaning.
CLUSTER_FAULTS = $(if $(filter-out all quick,$(FAULTS)),$(FAULTS),13)
test-cluster: rqlited ## break three dts on three rqlite FAULTS times (13; the long form is 200), and look for what is lost
	DTS_REQUIRE_RQLITE=1 DTS_CLUSTER_FAULTS=$(CLUSTER_FAULTS) go test -pgo=off -run '^Test(Cluster|Claim)' -count 1 -v -timeout 2h ./cmd/dts

.PHONY: bench bench-all profile crash backup-rounds sim model faults diff fuzz
bench: build ## measure lateness and throughput on this machine, in a few minutes
	bin/dts bench
	@if [ -x .cache/rqlited ]; then bin/dts bench rqlite-1 rqlite-3; else echo 'NOT MEASURED: rqlite, because there is no .cache/rqlited: run make rqlited, once'; fi

bench-all: build ## the same with the long scenarios, in about an hour
	bin/dts bench --all

profile: build ## make cmd/dts/default.pgo anew, from profiles of the benchmarks: for optimisation by profile
	for s in lateness drain create sustained; do bin/dts bench --runs 1 --sustain 60s --cpuprofile bin/$$s.prof $$s || exit 1; done
	go tool pprof -proto bin/*.prof >cmd/dts/default.pgo

crash: ## break a real server and what surrounds it ROUNDS times (36; the long form is 2000), and look for what is lost
	DTS_CRASH_ROUNDS=$(ROUNDS) go test -pgo=off -run '^Test(Crash|Hostile)' -count 1 -v -timeout 24h ./cmd/dts

backup-rounds: ## back up a server under load ROUNDS times (36; the long form is 200), restore each backup, and look for what is lost or late
	DTS_BACKUP_ROUNDS=$(ROUNDS) go test -pgo=off -run '^TestBackupRounds$$' -count 1 -v -timeout 24h ./cmd/dts

# One process for each core: handing a history's goroutines from core to core costs more than it gains.
CORES = $(shell getconf _NPROCESSORS_ONLN)
sim: ## simulate HISTORIES histories of failures and crashes (6000, 15 s; the long form is 1000000), with seeds FROM a number or random, and look for what is lost
	@go test -c -o bin/sim.test ./sched/sim && for i in $$(seq $(CORES)); do \
	(cd sched/sim && DTS_SIM_FROM=$$([ $(FROM) = random ] && echo random || echo $$(($(FROM) + i * 100000000))) DTS_SIM_HISTORIES=$$(($(HISTORIES) / $(CORES))) GOMAXPROCS=1 ../../bin/sim.test -test.run '^TestSim$$' -test.v -test.timeout 0 >../../bin/sim.$$i) & pids="$$pids $$!"; done; \
	failed=0; for p in $$pids; do wait $$p || failed=1; done; \
	for i in $$(seq $(CORES)); do cat bin/sim.$$i; done | awk '/^ +[0-9]+ [A-Za-z]/ { n = $$1; sub(/^ +[0-9]+ /, ""); if (!($$0 in sum)) name[++k] = $$0; sum[$$0] += n; next } \
	!/^(===|---|PASS|FAIL)/ { print } END { for (i = 1; i <= k; i++) printf "%12d %s\n", sum[name[i]], name[i] }'; exit $$failed

model: ## make STEPS steps (100000, some 10 minutes) with the model of a task's life and the real thing beside it, with seeds FROM a number or random
	DTS_MODEL_STEPS=$(STEPS) DTS_MODEL_FROM=$(FROM) go test -run '^TestModel$$' -count 1 -v -timeout 24h ./sched/model

faults: ## plant FAULTS (all, quick, model, or a part of a name) one by one, and demand that the tests find each
	DTS_SIM_FAULTS='$(FAULTS)' go test -run '^TestFaults$$' -count 1 -v -timeout 1h ./sched/sim

diff: croner ## compare with an oracle, croner and systemd in CASES cases each (40000, 3 minutes), with seeds FROM a number or random
	DTS_REQUIRE_DIFF=1 DTS_DIFF_CASES=$(CASES) DTS_DIFF_FROM=$(FROM) go test -pgo=off -count 1 -v -timeout 4h ./sched/cron/difftest

CRONER := sched/cron/difftest/testdata/croner
.PHONY: croner
croner: .cache/croner/package.json ## put croner into .cache, for make diff, if it is not there (needs node and npm)
.cache/croner/package.json: $(CRONER)/package.json $(CRONER)/package-lock.json
	rm -rf .cache/croner && mkdir -p .cache/croner && cp $^ $(CRONER)/.npmrc .cache/croner && \
	npm ci --prefix .cache/croner --ignore-scripts --no-audit --no-fund --silent || { rm -rf .cache/croner; exit 1; }

fuzz: ## fuzz each parser for FUZZTIME
	@grep -ro --include='*_test.go' --exclude-dir=.cache '^func Fuzz[A-Za-z0-9]*' . | sed 's,/[^/]*:func , ,' | sort | while read -r pkg name; do \
	echo "$$pkg $$name" && go test -pgo=off -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x "$$pkg" </dev/null || exit 1; done

.PHONY: install clean
SHARED = share/man/man1 share/bash-completion/completions share/zsh/site-functions share/fish/vendor_completions.d
install: share ## install bin/dts, its manual pages and completions below PREFIX, and the systemd unit in UNITDIR
	install -d $(DESTDIR)$(UNITDIR) $(addprefix $(DESTDIR)$(PREFIX)/,bin $(SHARED))
	install -m 755 bin/dts $(DESTDIR)$(PREFIX)/bin/dts
	install -m 644 bin/share/man1/*.1 $(DESTDIR)$(PREFIX)/$(word 1,$(SHARED))/
	install -m 644 bin/share/completions/dts.bash $(DESTDIR)$(PREFIX)/$(word 2,$(SHARED))/dts
	install -m 644 bin/share/completions/_dts $(DESTDIR)$(PREFIX)/$(word 3,$(SHARED))/_dts
	install -m 644 bin/share/completions/dts.fish $(DESTDIR)$(PREFIX)/$(word 4,$(SHARED))/dts.fish
	sed 's,/usr/bin/dts,$(PREFIX)/bin/dts,' init/dts.service >bin/share/dts.service
	install -m 644 bin/share/dts.service $(DESTDIR)$(UNITDIR)/dts.service

clean: ## remove what was built; the data in .data stays
	rm -rf bin .cache
