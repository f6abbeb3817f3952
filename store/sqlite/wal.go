package sqlite

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// SQLite reads a write-ahead log up to the first frame whose checksum is wrong and drops the rest without a
// word. After a power loss that is right: the rest is a transaction that was being written. After damage it
// loses transactions that were acknowledged. Two things tell the cases apart, and checkLog looks for both
// before SQLite touches the files:
//
//   - the shared memory (-shm) says how many frames were committed. It is written after they were synced, so
//     it never says too much;
//   - a frame that was written after a commit frame proves that the commit was synced, with all before it:
//     each commit waits for its sync. The checksums are cumulative, so that a frame shows which one it follows.
//
// The formats are those of https://sqlite.org/fileformat2.html#the_write_ahead_log and
// https://sqlite.org/walformat.html#the_wal_index_file_format.

const (
	walHeaderSize   = 32
	frameHeaderSize = 24
	walMagic        = 0x377f0682 // its lowest bit: the checksums are over big-endian words
	walVersion      = 3007000
	indexHeaderSize = 48
)

// logState is what a log holds.
type logState struct {
	salt   [8]byte // names this use of the file: it begins anew after a checkpoint
	frames int64   // that SQLite will read: up to the last commit before the first broken frame
	broken int64   // number of the first frame that is not valid, from 1; 0 where the file ends with a valid one
	proof  int64   // number of a frame that proves that the broken one was valid once; 0: nothing does
}

var errLogHeader = errors.New("its header is damaged")

// readLog reads a log of size bytes.
func readLog(r io.Reader, size int64) (logState, error) {
	var st logState
	if size <= walHeaderSize {
		return st, nil // nothing was written, or not yet more than the header, which is synced before a frame
	}
	var h [walHeaderSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return st, err
	}
	be := binary.BigEndian
	magic, version, pageSize := be.Uint32(h[0:]), be.Uint32(h[4:]), be.Uint32(h[8:])
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 != 0 {
		order = be
	}
	sum := walSum{}.add(order, h[:24])
	if magic&^1 != walMagic || version != walVersion || sum != storedSum(h[24:]) ||
		pageSize < 512 || pageSize > 65536 || pageSize&(pageSize-1) != 0 {
		return st, errLogHeader
	}
	st.salt = [8]byte(h[16:24])
	frame := make([]byte, frameHeaderSize+pageSize)
	commit := false // the frame before ends a transaction
	for n := int64(1); ; n++ {
		switch _, err := io.ReadFull(r, frame); {
		case err == io.EOF:
			return st, nil
		case err == io.ErrUnexpectedEOF: // a torn frame
			if st.broken == 0 {
				st.broken = n
			}
			return st, nil
		case err != nil:
			return st, err
		}
		page, pages := be.Uint32(frame[0:]), be.Uint32(frame[4:])
		ours := [8]byte(frame[8:16]) == st.salt
		stored := storedSum(frame[16:])
		follows := ours && sum.add(order, frame[:8]).add(order, frame[frameHeaderSize:]) == stored
		switch valid := follows && page != 0; {
		case st.broken != 0:
			if commit && follows {
				st.proof = n
				return st, nil
			}
		case !valid:
			st.broken = n
		case pages != 0:
			st.frames = n
		}
		commit, sum = pages != 0, stored
	}
}

// walSum is the checksum of a log: two running sums over 32-bit words.
type walSum [2]uint32

func storedSum(b []byte) walSum {
	return walSum{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// add returns the checksum after b, whose length is a multiple of eight.
func (s walSum) add(order binary.ByteOrder, b []byte) walSum {
	s0, s1 := s[0], s[1]
	if order == binary.ByteOrder(binary.LittleEndian) { // without the calls through the interface: nearly always
		for ; len(b) >= 8; b = b[8:] {
			s0 += binary.LittleEndian.Uint32(b) + s1
			s1 += binary.LittleEndian.Uint32(b[4:]) + s0
		}
		return walSum{s0, s1}
	}
	for ; len(b) >= 8; b = b[8:] {
		s0 += order.Uint32(b) + s1
		s1 += order.Uint32(b[4:]) + s0
	}
	return walSum{s0, s1}
}

// indexState is what the shared memory says of the log.
type indexState struct {
	salt   [8]byte
	frames int64 // committed
	copied int64 // of them in the database
}

// parseIndex reads the header of the shared memory. It reports false where that says nothing: there is
// none, or a crash of the machine has torn it.
func parseIndex(b []byte) (indexState, bool) {
	if len(b) < 2*indexHeaderSize+4 {
		return indexState{}, false
	}
	ne := binary.NativeEndian
	h := b[:indexHeaderSize]
	sum := walSum{}
	for w := h[:40]; len(w) > 0; w = w[8:] {
		sum[0] += ne.Uint32(w) + sum[1]
		sum[1] += ne.Uint32(w[4:]) + sum[0]
	}
	initialized := h[12] != 0
	if string(h) != string(b[indexHeaderSize:2*indexHeaderSize]) || ne.Uint32(h) != walVersion || !initialized ||
		sum != (walSum{ne.Uint32(h[40:]), ne.Uint32(h[44:])}) {
		return indexState{}, false
	}
	return indexState{salt: [8]byte(h[32:40]), frames: int64(ne.Uint32(h[16:])), copied: int64(ne.Uint32(b[2*indexHeaderSize:]))}, true
}

// checkLog looks at the files beside the database at path before SQLite does. Its error matches errDamaged
// when going on would lose what was committed. It changes nothing.
//
// No connection to the database may be open in this process: closing the files here would drop its locks.
func checkLog(path string) error {
	index, hasIndex, err := readIndex(path + "-shm")
	if err != nil {
		return err
	}
	f, err := os.Open(path + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var size int64
	if err == nil {
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		size = info.Size()
	}
	if size <= walHeaderSize {
		// An emptied log is normal: its frames are in the database then.
		if hasIndex && index.frames > index.copied {
			return fmt.Errorf("%w: the log %s-wal is gone or cut off; %d of its pages are not in the database yet", errDamaged, path, index.frames-index.copied)
		}
		return nil
	}
	if fileSize(path) == 0 {
		return fmt.Errorf("%w: the file is gone or empty, but its log %s-wal is there; SQLite would delete that", errDamaged, path)
	}
	st, err := readLog(bufio.NewReaderSize(f, 256<<10), size)
	if errors.Is(err, errLogHeader) {
		return fmt.Errorf("%w: the log %s-wal cannot be read: %w", errDamaged, path, err)
	}
	if err != nil {
		return fmt.Errorf("read the log %s-wal: %w", path, err)
	}
	switch {
	case hasIndex && index.salt == st.salt && st.frames < index.frames:
		return fmt.Errorf("%w: of the log %s-wal, %d of %d committed pages can be read; the next is broken or cut off", errDamaged, path, st.frames, index.frames)
	case st.proof != 0:
		return fmt.Errorf("%w: page %d of the log %s-wal is broken, and page %d shows that it was committed", errDamaged, st.broken, path, st.proof)
	}
	return nil
}

func readIndex(path string) (indexState, bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return indexState{}, false, nil
	}
	if err != nil {
		return indexState{}, false, err
	}
	defer f.Close()
	b := make([]byte, 2*indexHeaderSize+4)
	n, err := io.ReadFull(f, b)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return indexState{}, false, err
	}
	st, ok := parseIndex(b[:n])
	return st, ok, nil
}
