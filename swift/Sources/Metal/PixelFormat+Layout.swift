import MetalRuntime

/// The layout of a pixel in memory: adjacent components of the same size.
struct PixelLayout {
    let kind: UInt32
    let componentBytes: Int
    let channels: Int
    var flags: UInt32 = 0

    var pixelBytes: Int { componentBytes * channels }
    var isInteger: Bool { kind == MRT_UINT.rawValue || kind == MRT_SINT.rawValue }
    var isSigned: Bool { kind == MRT_SINT.rawValue }
}

extension MTLPixelFormat {
    /// Nil for unsupported formats: packed, compressed and stencil formats.
    var layout: PixelLayout? {
        switch self {
        case .a8Unorm: return PixelLayout(MRT_UNORM, 1, 1, MRT_FORMAT_ALPHA)
        case .r8Unorm: return PixelLayout(MRT_UNORM, 1, 1)
        case .r8Unorm_srgb: return PixelLayout(MRT_UNORM, 1, 1, MRT_FORMAT_SRGB)
        case .r8Snorm: return PixelLayout(MRT_SNORM, 1, 1)
        case .r8Uint: return PixelLayout(MRT_UINT, 1, 1)
        case .r8Sint: return PixelLayout(MRT_SINT, 1, 1)
        case .r16Unorm: return PixelLayout(MRT_UNORM, 2, 1)
        case .r16Snorm: return PixelLayout(MRT_SNORM, 2, 1)
        case .r16Uint: return PixelLayout(MRT_UINT, 2, 1)
        case .r16Sint: return PixelLayout(MRT_SINT, 2, 1)
        case .r16Float: return PixelLayout(MRT_FLOAT, 2, 1)
        case .r32Uint: return PixelLayout(MRT_UINT, 4, 1)
        case .r32Sint: return PixelLayout(MRT_SINT, 4, 1)
        case .r32Float, .depth32Float: return PixelLayout(MRT_FLOAT, 4, 1)
        case .depth16Unorm: return PixelLayout(MRT_UNORM, 2, 1)
        default: return ofTwo ?? ofFour
        }
    }

    var isDepth: Bool { self == .depth16Unorm || self == .depth32Float }

    private var ofTwo: PixelLayout? {
        switch self {
        case .rg8Unorm: return PixelLayout(MRT_UNORM, 1, 2)
        case .rg8Unorm_srgb: return PixelLayout(MRT_UNORM, 1, 2, MRT_FORMAT_SRGB)
        case .rg8Snorm: return PixelLayout(MRT_SNORM, 1, 2)
        case .rg8Uint: return PixelLayout(MRT_UINT, 1, 2)
        case .rg8Sint: return PixelLayout(MRT_SINT, 1, 2)
        case .rg16Unorm: return PixelLayout(MRT_UNORM, 2, 2)
        case .rg16Snorm: return PixelLayout(MRT_SNORM, 2, 2)
        case .rg16Uint: return PixelLayout(MRT_UINT, 2, 2)
        case .rg16Sint: return PixelLayout(MRT_SINT, 2, 2)
        case .rg16Float: return PixelLayout(MRT_FLOAT, 2, 2)
        case .rg32Uint: return PixelLayout(MRT_UINT, 4, 2)
        case .rg32Sint: return PixelLayout(MRT_SINT, 4, 2)
        case .rg32Float: return PixelLayout(MRT_FLOAT, 4, 2)
        default: return nil
        }
    }

    private var ofFour: PixelLayout? {
        switch self {
        case .rgba8Unorm: return PixelLayout(MRT_UNORM, 1, 4)
        case .rgba8Unorm_srgb: return PixelLayout(MRT_UNORM, 1, 4, MRT_FORMAT_SRGB)
        case .rgba8Snorm: return PixelLayout(MRT_SNORM, 1, 4)
        case .rgba8Uint: return PixelLayout(MRT_UINT, 1, 4)
        case .rgba8Sint: return PixelLayout(MRT_SINT, 1, 4)
        case .bgra8Unorm: return PixelLayout(MRT_UNORM, 1, 4, MRT_FORMAT_BGRA)
        case .bgra8Unorm_srgb: return PixelLayout(MRT_UNORM, 1, 4, MRT_FORMAT_BGRA, MRT_FORMAT_SRGB)
        case .rgba16Unorm: return PixelLayout(MRT_UNORM, 2, 4)
        case .rgba16Snorm: return PixelLayout(MRT_SNORM, 2, 4)
        case .rgba16Uint: return PixelLayout(MRT_UINT, 2, 4)
        case .rgba16Sint: return PixelLayout(MRT_SINT, 2, 4)
        case .rgba16Float: return PixelLayout(MRT_FLOAT, 2, 4)
        case .rgba32Uint: return PixelLayout(MRT_UINT, 4, 4)
        case .rgba32Sint: return PixelLayout(MRT_SINT, 4, 4)
        case .rgba32Float: return PixelLayout(MRT_FLOAT, 4, 4)
        default: return nil
        }
    }
}

extension PixelLayout {
    fileprivate init(_ kind: MrtComponentKind, _ componentBytes: Int, _ channels: Int, _ flags: MrtFormatFlags...) {
        self.init(
            kind: kind.rawValue, componentBytes: componentBytes, channels: channels,
            flags: flags.reduce(0) { $0 | $1.rawValue })
    }
}
