/** The default rotations of architectures whose configs may have none. */

/** Ministral 3's rotation. */
export const ministral3Rotation = {
  rope_type: "yarn",
  rope_theta: 1e6,
  factor: 16,
  original_max_position_embeddings: 16_384,
  beta_fast: 32,
  beta_slow: 1,
  mscale: 1,
  mscale_all_dim: 1,
  llama_4_scaling_beta: 0.1,
} as const;

/** GPT-OSS's rotation. */
export const gptOssRotation = {
  rope_type: "yarn",
  factor: 32,
  beta_fast: 32,
  beta_slow: 1,
  truncate: false,
  original_max_position_embeddings: 4096,
} as const;

/** CWM's rotation. */
export const cwmRotation = {
  rope_type: "llama3",
  rope_theta: 1e6,
  factor: 16,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 8192,
} as const;

/** Apertus's rotation. */
export const apertusRotation = { ...cwmRotation, rope_theta: 12e6, factor: 8 } as const;
