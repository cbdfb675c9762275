//go:build long

package main

const crashRounds = 100
