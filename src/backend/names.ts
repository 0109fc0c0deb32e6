/** The backends in fallback order, fastest first. */
export const backendNames = ["metal", "cpu", "reference"] as const;
/** The name of a backend: `"metal"`, `"cpu"` or `"reference"`. */
export type BackendName = (typeof backendNames)[number];
