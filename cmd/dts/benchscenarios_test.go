package main

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"dts/sched/cron"
)

// cannotMeasure says what a scenario needs and this system lacks.
func cannotMeasure(scenario string) error {
	switch scenario {
	case bigScenario.name, idleScenario.name, herdScenario.name:
		_, err := usageOf(os.Getpid())
		return err
	case commandsScenario.name:
		return checkStamp(context.Background())
	}
	return nil
}

func TestStampOf(t *testing.T) {
	at, err := stampOf("1795235972002531226\n")
	if err != nil || at.UnixNano() != 1795235972002531226 {
		t.Errorf("%v, %v", at, err)
	}
	for _, text := range []string{"", "1795235972N", "17952359720025312260000"} {
		if _, err := stampOf(text); err == nil || !strings.Contains(err.Error(), "%N") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCommandParts(t *testing.T) {
	parts := commandParts(2 * time.Second)
	if len(parts) != 3 || len(parts[0].due) != 100 || len(parts[1].due) != 400 || len(parts[2].due) != commandBurst*commandBursts {
		t.Fatalf("%+v", parts)
	}
	last := time.Duration(-1)
	for _, p := range parts {
		if p.due[0] <= last {
			t.Errorf("%s begins at %s, before the part before it has ended at %s", p.name, p.due[0], last)
		}
		last = p.due[len(p.due)-1]
	}
	burst := parts[2].due
	if burst[0] != burst[commandBurst-1] || burst[commandBurst]-burst[0] != burstGap {
		t.Errorf("the bursts are at %v", burst)
	}
}

func TestHerdShares(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	// All are due in the first second, in which LOW alone is served. Then 5:3:1, until HIGH runs dry, then the others.
	var herd []herdTask
	add := func(rank int, start time.Duration) {
		herd = append(herd, herdTask{rank: rank, due: at(time.Duration(len(herd)) * time.Millisecond), start: at(start)})
	}
	for i := range 50 {
		add(2, time.Duration(i)*10*time.Millisecond)
	}
	for round := range 100 {
		for k, rank := range []int{0, 1, 0, 2, 0, 1, 0, 1, 0} {
			add(rank, 2*time.Second+time.Duration(9*round+k)*time.Millisecond)
		}
	}
	for i := range 40 {
		add(1+i%2, 3*time.Second+time.Duration(i)*time.Millisecond)
	}
	got := herdShares(herd)
	for rank, want := range []float64{5, 3, 1} {
		if math.Abs(got[rank]-want) > 0.05 {
			t.Errorf("the shares are %v, not 5:3:1", got)
			break
		}
	}
	if far := farthest(got); far > 2 {
		t.Errorf("%v is %v %% from 5:3:1", got, far)
	}
	if far := farthest([3]float64{3, 3, 3}); math.Abs(far-200) > 1e-9 {
		t.Errorf("equal shares are %v %% from 5:3:1, not 200: LOW has three times its part", far)
	}
	if none := herdShares(herd[:1]); none != [3]float64{} {
		t.Errorf("one task has shares %v", none)
	}
}

// TestHourly holds that no schedule of the part of the hour fires outside of it, and that they are spread.
func TestHourly(t *testing.T) {
	const n = 500
	now := time.Date(2026, 3, 4, 10, 52, 17, 0, time.UTC)
	from, over := now.Add(idleGap), time.Hour-2*idleGap
	different := map[string]bool{}
	for i := range n {
		text := hourly(from, over, i, n)
		different[text] = true
		s, err := cron.Parse(text, cron.Options{})
		if err != nil {
			t.Fatal(err)
		}
		next := s.Next(now)
		if next.Before(from.Add(-time.Second)) || next.After(from.Add(over)) {
			t.Fatalf("%q fires at %s, outside of %s and the %s after it", text, next, from, over)
		}
	}
	if len(different) != n {
		t.Errorf("%d schedules are %d different ones", n, len(different))
	}
}

func TestMixedKeep(t *testing.T) {
	for _, d := range []time.Duration{minRetention, 30 * time.Second, mixedLongest} {
		keep, s := mixedKeep(d), d.Seconds()
		fired := s / retentionPart * (mixedFires + mixedCreates/2)
		if float64(keep) < fired || float64(keep) > s*mixedFinished {
			t.Errorf("in %s: %d are kept; %v run before retention looks, %v had run before", d, keep, fired, s*mixedFinished)
		}
	}
}

func TestReadOrder(t *testing.T) {
	var l mixedLoad
	for i := range 10 * readTurn {
		l.all = append(l.all, time.Duration(i))
	}
	sum := 0
	for kind := range readKinds {
		n := len(l.reads(kind))
		if n == 0 {
			t.Errorf("%s is never read", readKinds[kind])
		}
		sum += n
	}
	if sum != len(l.all) || len(l.reads(allReads)) != sum {
		t.Errorf("of %d reads %d have a kind", len(l.all), sum)
	}
}
