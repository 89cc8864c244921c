// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Links the program with a C library, dynamically: its threads are that library's.
package main

import "C"
