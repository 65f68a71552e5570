module github.com/backstage-go/backstage

go 1.25.0

require google.golang.org/protobuf v1.36.12
