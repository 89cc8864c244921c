// SPDX-License-Identifier: Apache-2.0

// A Go program whose functions are recorded. It writes `ready` into its folder, waits for `go`,
// calls its functions in goroutines, whose stacks grow and move while garbage is collected and the
// profiler runs, writes the numbers of their calls into `counts`, then `done`, and waits for
// `release`. With "endless" it calls until `release` is there. A wrong result ends it with status 3.
package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	workers = 4
	depth   = 50
)

type service struct {
	handled, grown, failed atomic.Int64
}

//go:noinline
func (s *service) handle(n int64, text string, ratio float64) (int64, string) {
	s.handled.Add(1)
	return n + int64(ratio*4), text + strconv.FormatInt(n, 10)
}

//go:noinline
func (s *service) grow(left int, f func(int) int) int {
	s.grown.Add(1)
	var numbers [100]int
	for i := range numbers {
		numbers[i] = f(i)
	}
	if left == 0 {
		return numbers[1]
	}
	return s.grow(left-1, f) + numbers[left]
}

//go:noinline
func (s *service) fails(n int64) (result int64) {
	s.failed.Add(1)
	defer func() {
		if recover() != nil {
			result = n
		}
	}()
	var nothing *service
	return nothing.handled.Load()
}

func (s *service) work(i int64) {
	n, text := s.handle(i, "text", 0.5)
	if n != i+2 || text != "text"+strconv.FormatInt(i, 10) {
		wrong("handle", n, text)
	}
	if i%10 != 0 {
		return
	}
	sum := make(chan int)
	go func() {
		// The thread ends with this goroutine.
		if i%100 == 0 {
			runtime.LockOSThread()
		}
		sum <- s.grow(depth, func(i int) int { return i })
	}()
	if <-sum != 1+depth*(depth+1)/2 {
		wrong("grow")
	}
	if s.fails(i) != i {
		wrong("fails")
	}
}

func wrong(what ...any) {
	fmt.Fprintln(os.Stderr, what...)
	os.Exit(3)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func waitFor(path string) {
	for !exists(path) {
		time.Sleep(time.Millisecond)
	}
}

func main() {
	folder := os.Args[1]
	calls, _ := strconv.ParseInt(os.Args[2], 10, 64)
	endless := len(os.Args) > 3 && os.Args[3] == "endless"
	debug.SetGCPercent(1)
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		wrong(err)
	}
	os.WriteFile(folder+"/ready", nil, 0o644)
	if !endless {
		waitFor(folder + "/go")
	}
	var s service
	var wait sync.WaitGroup
	for w := 0; w < workers; w++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := int64(0); i < calls || endless; i++ {
				s.work(i)
				if endless && i%10 == 0 && exists(folder+"/release") {
					return
				}
			}
		}()
	}
	wait.Wait()
	pprof.StopCPUProfile()
	counts := fmt.Sprintln(s.handled.Load(), s.grown.Load(), s.failed.Load())
	os.WriteFile(folder+"/counts", []byte(counts), 0o644)
	os.WriteFile(folder+"/done", nil, 0o644)
	waitFor(folder + "/release")
}
