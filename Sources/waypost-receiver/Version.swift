// The version of the program; deploy/package replaces it for its tests.

let currentVersion = "0.1.0"
