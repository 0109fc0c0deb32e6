/** Descriptions of image processors as data. */

/** The filters for resizing images, under Pillow's names. */
export type ImageFilter = "nearest" | "box" | "bilinear" | "hamming" | "bicubic" | "lanczos";

/** The size that images are resized to. */
export type ImageSize =
  /** Height and width. */
  | { readonly kind: "exact"; readonly height: number; readonly width: number }
  /**
   * Resizes the shorter side to `shortest`, keeping the aspect ratio, unless the longer side would exceed `longest`.
   * Then rounds sides down to a `multiple`, 1 by default.
   */
  | {
      readonly kind: "shortest";
      readonly side: number;
      readonly longest?: number | undefined;
      readonly multiple?: number | undefined;
    }
  /** Resizes the longer side to `side`, and keeps the aspect ratio. */
  | { readonly kind: "longest"; readonly side: number }
  /** The largest size within height and width, keeping the aspect ratio. */
  | { readonly kind: "within"; readonly height: number; readonly width: number }
  /** Height and width as multiples of a number, with nearly the same aspect ratio, and an area between two bounds. */
  | { readonly kind: "area"; readonly multiple: number; readonly least: number; readonly most: number }
  /** The largest size of whole patches, at most `most` of them, with nearly the same aspect ratio. */
  | { readonly kind: "patches"; readonly patch: number; readonly most: number }
  /** Height and width as multiples of a number; with `keepsRatio`, one factor that changes the sides the least. */
  | {
      readonly kind: "multiple";
      readonly height: number;
      readonly width: number;
      readonly multiple: number;
      readonly keepsRatio: boolean;
    };

/** How images become the input of a model. Steps without a setting are omitted. */
export interface ImageProcessing {
  /** The size that images are resized to. Default: their size. */
  readonly size?: ImageSize | undefined;
  /** The filter for resizing. Default `"bilinear"`. */
  readonly filter?: ImageFilter | undefined;
  /** Height and width of a crop of the center; smaller images get a border of zeros. Default: no crop. */
  readonly crop?: readonly [height: number, width: number] | undefined;
  /** Height and width to which images are padded, with zeros below and to the right. Default: no padding. */
  readonly padding?: readonly [height: number, width: number] | undefined;
  /** The factor of bytes, such as 1 / 255. Default 1. */
  readonly rescale?: number | undefined;
  /** The mean of each channel, which is subtracted. Default: none. */
  readonly mean?: readonly number[] | undefined;
  /** The standard deviation of each channel, by which channels are divided. Default: none. */
  readonly std?: readonly number[] | undefined;
  /** Whether images are resized as floats, without rounding to bytes. Default false. */
  readonly resizesFloats?: boolean | undefined;
}
