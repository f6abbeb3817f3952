package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// crashed is what a database's files hold while it is open, as a kill would leave them. Its log has begun anew
// once, so that frames of its earlier use lie behind its end.
type crashed struct{ db, wal, shm []byte }

func crash(t testing.TB) crashed {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dts.db")
	d := openTest(t, path, Options{})
	n := int64(0)
	write := func(times int) {
		for range times {
			mustApply(t, d, put(n, strings.Repeat("x", 3000)), put(n+1, "y"))
			n += 2
		}
	}
	write(60)
	if _, err := d.ckpt.checkpoint(true); err != nil {
		t.Fatal(err)
	}
	d.ckpt.mu.Lock()
	if _, _, busy, err := d.ckpt.wal("RESTART"); err != nil || busy {
		t.Fatalf("restart the log: %t, %v", busy, err)
	}
	d.ckpt.mu.Unlock()
	write(20)
	var c crashed
	for suffix, b := range map[string]*[]byte{"": &c.db, "-wal": &c.wal, "-shm": &c.shm} {
		var err error // cat, because closing a descriptor of this process would drop SQLite's locks
		if *b, err = exec.Command("cat", path+suffix).Output(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// put writes the files to a new directory and returns the database's path; nil is a file that is not there.
func (c crashed) put(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dts.db")
	for suffix, b := range map[string][]byte{"": c.db, "-wal": c.wal, "-shm": c.shm} {
		if b == nil {
			continue
		}
		if err := os.WriteFile(path+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestReadLog(t *testing.T) {
	c := crash(t)
	st, err := readLog(bytes.NewReader(c.wal), int64(len(c.wal)))
	index, ok := parseIndex(c.shm)
	if err != nil || !ok || st.frames == 0 || st.frames != index.frames || st.salt != index.salt || st.proof != 0 {
		t.Fatalf("the log: %+v, %v; the shared memory: %+v, %t", st, err, index, ok)
	}
	if st.broken != st.frames+1 {
		t.Errorf("frames of the log's earlier use are missing in this test: %+v", st)
	}
	if err := checkLog(c.put(t)); err != nil {
		t.Errorf("a sound log: %v", err)
	}
}

// frame returns where frame n begins and ends.
func frame(n int64) (from, to int64) {
	const size = frameHeaderSize + 4096
	return walHeaderSize + (n-1)*size, walHeaderSize + n*size
}

// Whatever bit is flipped, and wherever the log is cut off: nothing that was committed is dropped in silence
// while the shared memory is there, and without it nothing but what could be the last transactions.
func TestDamagedLog(t *testing.T) {
	c := crash(t)
	whole, err := readLog(bytes.NewReader(c.wal), int64(len(c.wal)))
	if err != nil {
		t.Fatal(err)
	}
	_, end := frame(whole.frames)
	lastTwo := whole.frames
	for commits := 0; commits < 3; lastTwo-- {
		from, _ := frame(lastTwo)
		if binary.BigEndian.Uint32(c.wal[from+4:]) != 0 {
			commits++
		}
	}
	check := func(what string, at int64, wal []byte) {
		t.Helper()
		st, err := readLog(bytes.NewReader(wal), int64(len(wal)))
		lost := err != nil || st.frames < whole.frames
		d := c
		d.wal = wal
		if err := checkLog(d.put(t)); errors.Is(err, errDamaged) != lost {
			t.Errorf("%s at %d: %d of %d frames are left, and the check says %v", what, at, st.frames, whole.frames, err)
		}
		if err == nil && what == "flip" && lost && st.broken <= lastTwo && st.proof == 0 {
			t.Errorf("%s at %d, frame %d of %d: found only by the shared memory", what, at, st.broken, whole.frames)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	for range rounds {
		wal := bytes.Clone(c.wal)
		at := rng.Int64N(end)
		if rng.IntN(3) == 0 { // a frame's header, which is short and matters most
			from, _ := frame(1 + rng.Int64N(whole.frames))
			at = from + rng.Int64N(frameHeaderSize)
		}
		wal[at] ^= 1 << rng.IntN(8)
		check("flip", at, wal)
		at = rng.Int64N(end)
		check("cut", at, c.wal[:at])
	}
	for at := range int64(walHeaderSize) {
		wal := bytes.Clone(c.wal)
		wal[at] ^= 1 << rng.IntN(8)
		check("flip in the header", at, wal)
	}
	for what, d := range map[string]crashed{
		"no log":            {c.db, nil, c.shm},
		"an empty log":      {c.db, []byte{}, c.shm},
		"no database":       {nil, c.wal, nil},
		"an empty database": {[]byte{}, c.wal, c.shm},
	} {
		path := d.put(t)
		if _, err := Open(t.Context(), path, Options{Migrations: testMigrations(1)}); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		if b, err := os.ReadFile(path); d.db != nil && (err != nil || !bytes.Equal(b, d.db)) || d.db == nil && err == nil {
			t.Errorf("%s: the database was changed", what)
		}
		if b, err := os.ReadFile(path + "-wal"); d.wal != nil && (err != nil || !bytes.Equal(b, d.wal)) {
			t.Errorf("%s: the log was changed", what)
		}
	}
}

// A power loss leaves the frames of the transaction that was being written in any state, and the shared memory
// gone, torn or old. That is no damage.
func TestTornLog(t *testing.T) {
	c := crash(t)
	whole, err := readLog(bytes.NewReader(c.wal), int64(len(c.wal)))
	if err != nil {
		t.Fatal(err)
	}
	first := whole.frames // of the last transaction
	for ; ; first-- {
		from, _ := frame(first - 1)
		if binary.BigEndian.Uint32(c.wal[from+4:]) != 0 {
			break
		}
	}
	if first == whole.frames {
		t.Fatal("the last transaction has a single frame")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for lost := first; lost < whole.frames; lost++ { // each frame of the last transaction but its commit
		d := c
		d.wal, d.shm = bytes.Clone(c.wal), nil
		from, to := frame(lost)
		for i := from; i < to; i++ {
			d.wal[i] = byte(rng.Uint32())
		}
		if err := checkLog(d.put(t)); err != nil {
			t.Errorf("frame %d of the last transaction, %d to %d, was not written: %v", lost, first, whole.frames, err)
		}
	}
	// A commit that failed at its sync is overwritten by a shorter one; its last frame stays behind that.
	d := c
	d.wal, d.shm = bytes.Clone(c.wal), nil
	from, _ := frame(first)
	prev, _ := frame(first - 1)
	sum := storedSum(c.wal[prev+16:])
	h := d.wal[from : from+frameHeaderSize]
	copy(h, c.wal[prev:prev+8]) // page and size of an earlier commit
	var order binary.ByteOrder = binary.LittleEndian
	if c.wal[3]&1 != 0 {
		order = binary.BigEndian
	}
	sum = sum.add(order, h[:8]).add(order, d.wal[from+frameHeaderSize:from+frameHeaderSize+4096])
	binary.BigEndian.PutUint32(h[16:], sum[0])
	binary.BigEndian.PutUint32(h[20:], sum[1])
	if st, err := readLog(bytes.NewReader(d.wal), int64(len(d.wal))); err != nil || st.frames != first || st.broken != first+1 || st.proof != 0 {
		t.Errorf("a short commit over a longer one that failed: %+v, %v", st, err)
	}
	for _, shm := range [][]byte{{}, make([]byte, 32768), append(bytes.Repeat([]byte{7}, 16), c.shm[16:]...)} {
		d := c
		d.shm = shm
		from, _ := frame(whole.frames)
		d.wal = c.wal[:from+100]
		if err := checkLog(d.put(t)); err != nil {
			t.Errorf("a torn log beside a torn shared memory: %v", err)
		}
	}
}

// A refusal after a check leaves database and log as they are, too.
func TestRefusalKeepsTheLog(t *testing.T) {
	c := crash(t)
	copy(c.db[len(c.db)/8192*4096:], bytes.Repeat([]byte("damage!!"), 4096))
	path := c.put(t)
	if _, err := markRunning(path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open(t.Context(), path, Options{Migrations: testMigrations(1)}); !errors.Is(err, errDamaged) {
			t.Fatalf("err = %v", err)
		}
		for suffix, want := range map[string][]byte{"": c.db, "-wal": c.wal} {
			if b, err := os.ReadFile(path + suffix); err != nil || !bytes.Equal(b, want) {
				t.Errorf("dts.db%s was changed: %d bytes, were %d; %v", suffix, len(b), len(want), err)
			}
		}
	}
}

func FuzzReadLog(f *testing.F) {
	c := crash(f)
	_, end := frame(3)
	f.Add(c.wal[:end], c.shm[:100])
	f.Add(c.wal[:walHeaderSize+10], []byte{})
	f.Fuzz(func(t *testing.T, wal, shm []byte) {
		parseIndex(shm)
		st, err := readLog(bytes.NewReader(wal), int64(len(wal)))
		if err != nil && !errors.Is(err, errLogHeader) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
		if n := int64(len(wal)) / (frameHeaderSize + 512); st.frames > n || st.broken > n+1 || st.proof > n {
			t.Errorf("%+v of %d bytes", st, len(wal))
		}
	})
}
