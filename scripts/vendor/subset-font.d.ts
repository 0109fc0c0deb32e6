declare module "subset-font" {
  /** Returns a font with the glyphs of these characters, in the format of the original. */
  export default function subset(font: Buffer, text: string, options?: { noLayoutClosure?: boolean }): Promise<Buffer>;
}
