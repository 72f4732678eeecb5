// An open loop that takes little of its core: calls go to Kafka when they are due, however slow the rest is. Each is a
// copy of one record, with its due time (µs, monotonic), how much later it was produced, its number and its user written
// over the digits there. What it is told and what it reports goes over Node's IPC channel: JSON, a line each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

type order struct {
	// Calls a second.
	Rate    float64
	Seconds float64
	TickMs  float64
	Users   int
	// The record's key and value, in base64, and where digits go in the value.
	Key, Value []byte
	// Digits of the user at the end of the key.
	Due, Later, Number, User place
	// Where the id stands in the value, if it goes into a header too.
	Id *place
}

type place struct{ At, Length int }

var channel *os.File

func main() {
	fd, err := strconv.Atoi(os.Getenv("NODE_CHANNEL_FD"))
	if err != nil {
		panic("this program is started by the benchmarks")
	}
	channel = os.NewFile(uintptr(fd), "channel")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA_BROKERS"), ",")...),
		kgo.DefaultProduceTopic(os.Args[1]),
		kgo.ProducerLinger(0),
		// As the collector writes, and as plain kafkajs can read.
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(1_000_000),
	)
	if err != nil {
		panic(err)
	}
	if err := client.Ping(context.Background()); err != nil {
		panic(err)
	}
	report(map[string]any{"kind": "listening"})
	lines := bufio.NewScanner(channel)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var told order
		if json.Unmarshal(lines.Bytes(), &told) == nil && told.Rate > 0 {
			go pace(client, told)
		}
	}
}

func pace(client *kgo.Client, told order) {
	startAt := monotonicMs() + 50
	report(map[string]any{"kind": "pacing", "from": startAt})
	total := int(told.Rate * told.Seconds)
	var failed atomic.Int64
	var pending sync.WaitGroup
	pending.Add(total)
	produced := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.Add(1)
		}
		pending.Done()
	}
	latestMs := 0.0
	tick := time.NewTicker(time.Duration(told.TickMs * float64(time.Millisecond)))
	for next := 0; next < total; {
		<-tick.C
		now := monotonicMs()
		for ; next < total; next++ {
			dueAt := startAt + float64(next)*1_000/told.Rate
			if dueAt > now {
				break
			}
			latestMs = max(latestMs, now-dueAt)
			client.Produce(context.Background(), record(&told, next, dueAt, now), produced)
		}
	}
	tick.Stop()
	pending.Wait()
	report(map[string]any{
		"kind": "paced", "from": startAt, "sent": []int{total}, "failed": failed.Load(), "latestMs": latestMs,
	})
}

func record(told *order, number int, dueAt, now float64) *kgo.Record {
	both := make([]byte, len(told.Key)+len(told.Value))
	key, value := both[:len(told.Key):len(told.Key)], both[len(told.Key):]
	copy(key, told.Key)
	copy(value, told.Value)
	user := (number * 7_919) % told.Users
	write(value, told.Due, int(dueAt*1_000))
	write(value, told.Later, int((now-dueAt)*1_000))
	write(value, told.Number, number)
	write(value, told.User, user)
	write(key, place{len(key) - told.User.Length, told.User.Length}, user)
	made := &kgo.Record{Key: key, Value: value}
	if told.Id != nil {
		id := value[told.Id.At : told.Id.At+told.Id.Length]
		made.Headers = []kgo.RecordHeader{{Key: "id", Value: id}}
	}
	return made
}

func write(text []byte, to place, number int) {
	for at := to.At + to.Length - 1; at >= to.At; at-- {
		text[at] = byte('0' + number%10)
		number /= 10
	}
}

func report(what map[string]any) {
	line, _ := json.Marshal(what)
	channel.Write(append(line, '\n'))
}

// The clock that Node's process.hrtime reads.
func monotonicMs() float64 {
	const clockMonotonic = 1
	var at syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	return float64(at.Sec)*1e3 + float64(at.Nsec)/1e6
}
