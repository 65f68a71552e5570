package brokers

// composeFile is the file of a site whose servers run in containers.
const composeFile = "compose.json"
