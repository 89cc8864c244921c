// SPDX-License-Identifier: Apache-2.0

// user_probes_go COUNT: calls a method and a function COUNT times each, on a stack that grows in between, and
// says so. Static, as Go makes programs.
package main

import (
	"os"
	"strconv"
)

type shop struct{ sold int }

//go:noinline
func (s *shop) order(number int, name string, flag bool) int {
	s.sold += len(name)
	return number
}

//go:noinline
func grow(depth int) int {
	var space [256]byte
	if depth == 0 {
		return int(space[0])
	}
	return grow(depth-1) + int(space[depth%256])
}

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(2)
	}
	done := make(chan int)
	go func() {
		tea := &shop{}
		for i := 0; i < count; i++ {
			if tea.order(i, "tea"[:i%4], i%2 == 0) != i {
				os.Exit(1)
			}
			grow(i)
		}
		done <- tea.sold
	}()
	sold := <-done
	os.Stdout.WriteString("called " + strconv.Itoa(count) + " sold " + strconv.Itoa(sold) + "\n")
}
