// Copy this file to src/orchestrator/, so that imports of the protocol from there use the package.
export * from "endmark/protocol";
