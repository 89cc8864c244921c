// SPDX-License-Identifier: Apache-2.0

// checkout: charges a customer twice a second, once above and once below the limit of the example
// deploy/examples/traces/go-service.yaml. Static, as Go makes programs.
package main

import (
	"os"
	"time"
)

type Till struct{ total int64 }

//go:noinline
func (t *Till) Charge(cents int64, customer string) {
	t.total += cents
	if len(customer) == 0 {
		os.Exit(1)
	}
}

func main() {
	till := &Till{}
	for {
		till.Charge(12000, "ada")
		till.Charge(900, "grace")
		time.Sleep(500 * time.Millisecond)
	}
}
