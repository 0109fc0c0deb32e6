/** CRC-32C: Castagnoli's polynomial, reflected, as in RFC 3720. */

const POLYNOMIAL = 0x82f63b78;

/** Computes the table of remainders, one for each byte. */
const remainders = (): Uint32Array =>
  Uint32Array.from({ length: 256 }, (_, byte) => {
    let remainder = byte;
    for (let bit = 0; bit < 8; bit++) remainder = (remainder >>> 1) ^ (remainder & 1 ? POLYNOMIAL : 0);
    return remainder;
  });
let table: Uint32Array | undefined;

export function crc32c(bytes: Uint8Array): number {
  table ??= remainders();
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ table[(crc ^ byte) & 0xff];
  return ~crc >>> 0;
}

/**
 * Masks a checksum as TFRecord files do: rotates it and adds a constant. A checksum over data that contains checksums
 * then remains useful.
 */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
