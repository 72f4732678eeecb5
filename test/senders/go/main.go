// Sends a call of each type, and ends once each of them was accepted or given up.
package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/segmentio/analytics-go/v3"
)

type results struct {
	open   sync.WaitGroup
	failed error
}

func (r *results) Success(analytics.Message) { r.open.Done() }

func (r *results) Failure(_ analytics.Message, err error) {
	r.failed = err
	r.open.Done()
}

func main() {
	results := &results{}
	client, err := analytics.NewWithConfig(os.Getenv("WRITE_KEY"), analytics.Config{
		Endpoint: os.Getenv("COLLECTOR"),
		Callback: results,
	})
	if err != nil {
		panic(err)
	}
	for _, call := range []analytics.Message{
		analytics.Identify{UserId: "u-1", Traits: analytics.NewTraits().SetName("Jürgen 🚲").Set("plan", "pro")},
		analytics.Track{UserId: "u-1", Event: "Order Completed", Properties: analytics.NewProperties().Set("total", 12.5).Set("note", "日本")},
		analytics.Page{UserId: "u-1", Name: "Products", Properties: analytics.NewProperties().SetURL("https://shop.example/products")},
		analytics.Screen{UserId: "u-1", Name: "Home", Properties: analytics.NewProperties().Set("from", "start")},
		analytics.Group{UserId: "u-1", GroupId: "g-1", Traits: analytics.NewTraits().Set("seats", 5)},
		analytics.Alias{UserId: "u-2", PreviousId: "u-1"},
	} {
		results.open.Add(1)
		if err := client.Enqueue(call); err != nil {
			panic(err)
		}
	}
	// Close sends what is left, but only once: what fails then, or waits to be sent again, is dropped.
	results.open.Wait()
	client.Close()
	if results.failed != nil {
		fmt.Fprintln(os.Stderr, results.failed)
		os.Exit(1)
	}
}
