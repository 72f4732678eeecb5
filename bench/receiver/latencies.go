package main

import (
	"bytes"
	"slices"
	"strconv"
	"sync"
)

// Of a request whose id says when its call was due, in ms on the monotonic clock: how much later the call was produced,
// and how much later it came here.
type sample struct{ due, produced, came float64 }

var (
	idempotencyKey = []byte("dempotency-")

	samplesLock sync.Mutex
	// In blocks: a list that is copied as it grows would stop the receiver meanwhile.
	blocks [][]sample
)

const blockSize = 65_536

// Keeps the times of a request with the id `due-<µs>-<µs later>-…`; others have none.
func keepTimes(head []byte) {
	at := bytes.Index(head, idempotencyKey)
	if at < 0 {
		return
	}
	rest := head[at+len(idempotencyKey)+len("Key:"):]
	rest = bytes.TrimLeft(rest, " ")
	if !bytes.HasPrefix(rest, []byte("due-")) {
		return
	}
	due, rest := digits(rest[len("due-"):])
	later, _ := digits(bytes.TrimPrefix(rest, []byte("-")))
	came := monotonicMs()
	samplesLock.Lock()
	last := len(blocks) - 1
	if last < 0 || len(blocks[last]) == blockSize {
		blocks = append(blocks, make([]sample, 0, blockSize))
		last++
	}
	blocks[last] = append(blocks[last], sample{due / 1e3, later / 1e3, came - due/1e3})
	samplesLock.Unlock()
}

func digits(text []byte) (float64, []byte) {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	value, _ := strconv.ParseFloat(string(text[:end]), 64)
	return value, text[end:]
}

// Of the calls that were due in a window: times since they were due, or since they were produced.
func quantiles(from, to float64, since string) map[string]any {
	samplesLock.Lock()
	defer samplesLock.Unlock()
	all := make([]float64, 0, len(blocks)*blockSize)
	for _, block := range blocks {
		for _, each := range block {
			if each.due < from || each.due >= to {
				continue
			}
			if since == "produced" {
				each.came -= each.produced
			}
			all = append(all, each.came)
		}
	}
	result := map[string]any{"kind": "quantiles", "count": len(all)}
	if len(all) == 0 {
		return result
	}
	slices.Sort(all)
	at := func(share float64) float64 { return all[min(len(all)-1, int(float64(len(all))*share))] }
	result["p50"], result["p95"] = at(0.5), at(0.95)
	result["p99"], result["p999"], result["max"] = at(0.99), at(0.999), at(1)
	return result
}
