package main

//go:generate go run ../../cmd/backstage generate
