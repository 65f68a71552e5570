package backstage

// SupportsVersion0_1 is named by generated code that needs this version of the
// package or a later one. If it is undefined, the module
// github.com/backstage-go/backstage is older than the generator that wrote the
// code: upgrade it with go get.
const SupportsVersion0_1 = true
