// Values of render passes and render pipelines, which this device does not support.

public enum MTLLoadAction: UInt, Sendable {
    case dontCare = 0
    case load = 1
    case clear = 2
}

public enum MTLStoreAction: UInt, Sendable {
    case dontCare = 0
    case store = 1
    case multisampleResolve = 2
    case storeAndMultisampleResolve = 3
    case unknown = 4
    case customSampleDepthStore = 5
}

public enum MTLPrimitiveType: UInt, Sendable {
    case point = 0
    case line = 1
    case lineStrip = 2
    case triangle = 3
    case triangleStrip = 4
}

public enum MTLBlendFactor: UInt, Sendable {
    case zero = 0
    case one = 1
    case sourceColor = 2
    case oneMinusSourceColor = 3
    case sourceAlpha = 4
    case oneMinusSourceAlpha = 5
    case destinationColor = 6
    case oneMinusDestinationColor = 7
    case destinationAlpha = 8
    case oneMinusDestinationAlpha = 9
    case sourceAlphaSaturated = 10
    case blendColor = 11
    case oneMinusBlendColor = 12
    case blendAlpha = 13
    case oneMinusBlendAlpha = 14
    case source1Color = 15
    case oneMinusSource1Color = 16
    case source1Alpha = 17
    case oneMinusSource1Alpha = 18
}

public enum MTLBlendOperation: UInt, Sendable {
    case add = 0
    case subtract = 1
    case reverseSubtract = 2
    case min = 3
    case max = 4
}

public enum MTLCullMode: UInt, Sendable {
    case none = 0
    case front = 1
    case back = 2
}

public enum MTLDepthClipMode: UInt, Sendable {
    case clip = 0
    case clamp = 1
}

public enum MTLIndexType: UInt, Sendable {
    case uint16 = 0
    case uint32 = 1
}

public enum MTLMultisampleDepthResolveFilter: UInt, Sendable {
    case sample0 = 0
    case min = 1
    case max = 2
}

public enum MTLMultisampleStencilResolveFilter: UInt, Sendable {
    case sample0 = 0
    case depthResolvedSample = 1
}

public enum MTLPrimitiveTopologyClass: UInt, Sendable {
    case unspecified = 0
    case point = 1
    case line = 2
    case triangle = 3
}

public enum MTLStencilOperation: UInt, Sendable {
    case keep = 0
    case zero = 1
    case replace = 2
    case incrementClamp = 3
    case decrementClamp = 4
    case invert = 5
    case incrementWrap = 6
    case decrementWrap = 7
}

public enum MTLTessellationPartitionMode: UInt, Sendable {
    case pow2 = 0
    case integer = 1
    case fractionalOdd = 2
    case fractionalEven = 3
}

public enum MTLTessellationFactorFormat: UInt, Sendable {
    case half = 0
}

public enum MTLTessellationFactorStepFunction: UInt, Sendable {
    case constant = 0
    case perPatch = 1
    case perInstance = 2
    case perPatchAndPerInstance = 3
}

public enum MTLTessellationControlPointIndexType: UInt, Sendable {
    case none = 0
    case uint16 = 1
    case uint32 = 2
}

public enum MTLTriangleFillMode: UInt, Sendable {
    case fill = 0
    case lines = 1
}

public enum MTLVisibilityResultMode: UInt, Sendable {
    case disabled = 0
    case boolean = 1
    case counting = 2
}

public enum MTLVisibilityResultType: UInt, Sendable {
    case reset = 0
    case accumulate = 1
}

public enum MTLWinding: UInt, Sendable {
    case clockwise = 0
    case counterClockwise = 1
}

public struct MTLColorWriteMask: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var alpha: MTLColorWriteMask { MTLColorWriteMask(rawValue: 1) }
    public static var blue: MTLColorWriteMask { MTLColorWriteMask(rawValue: 2) }
    public static var green: MTLColorWriteMask { MTLColorWriteMask(rawValue: 4) }
    public static var red: MTLColorWriteMask { MTLColorWriteMask(rawValue: 8) }
    public static var all: MTLColorWriteMask { MTLColorWriteMask(rawValue: 15) }
}

public struct MTLRenderStages: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var vertex: MTLRenderStages { MTLRenderStages(rawValue: 1) }
    public static var fragment: MTLRenderStages { MTLRenderStages(rawValue: 2) }
    public static var tile: MTLRenderStages { MTLRenderStages(rawValue: 4) }
    public static var object: MTLRenderStages { MTLRenderStages(rawValue: 8) }
    public static var mesh: MTLRenderStages { MTLRenderStages(rawValue: 16) }
}

public struct MTLStoreActionOptions: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var customSamplePositions: MTLStoreActionOptions { MTLStoreActionOptions(rawValue: 1) }
}
