const words = 2n ** 32n;

/** Philox4x32-10 from its paper, in arbitrary-precision integers. */
export function philoxByDefinition(counter: readonly number[], key: readonly number[]): bigint[] {
  let [a, b, c, d] = counter.map(BigInt) as [bigint, bigint, bigint, bigint];
  let [k, l] = key.map(BigInt) as [bigint, bigint];
  for (let round = 0; round < 10; round++) {
    const [first, second] = [0xd2511f53n * a, 0xcd9e8d57n * c];
    [a, b, c, d] = [(second / words) ^ b ^ k, second % words, (first / words) ^ d ^ l, first % words];
    [k, l] = [(k + 0x9e3779b9n) % words, (l + 0xbb67ae85n) % words];
  }
  return [a, b, c, d];
}
