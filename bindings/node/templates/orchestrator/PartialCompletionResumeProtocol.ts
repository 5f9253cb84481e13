// Copy this file to src/orchestrator/: what imports the protocol from there gets it from the package.
export * from "endmark/protocol";
