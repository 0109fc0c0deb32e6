// Only the names of neural network types exist, so that packages that mention them compile. Creating an object prints a
// message and ends the program.
import Metal

private func refuseNetwork(_ type: Any.Type) -> Never {
    fatalError("\(type): networks of MetalPerformanceShaders are not supported on Linux; write the layer as a kernel.")
}

public class MPSState: NSObject {
    override init() { refuseNetwork(MPSState.self) }
}

public struct MPSNNPaddingMethod: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let alignTopLeft = MPSNNPaddingMethod(rawValue: 1)
    public static let alignBottomRight = MPSNNPaddingMethod(rawValue: 2)
    public static let addRemainderToTopRight = MPSNNPaddingMethod(rawValue: 4)
    public static let addRemainderToBottomLeft = MPSNNPaddingMethod(rawValue: 8)
    public static let addRemainderToBottomRight = MPSNNPaddingMethod(rawValue: 12)
    public static let sizeSame = MPSNNPaddingMethod(rawValue: 16)
    public static let sizeFull = MPSNNPaddingMethod(rawValue: 32)
    public static let custom = MPSNNPaddingMethod(rawValue: 1 << 14)
}

/// A rule for the size of a layer's result.
public protocol MPSNNPadding: NSSecureCoding {
    func paddingMethod() -> MPSNNPaddingMethod
    func label() -> String
    func destinationImageDescriptor(
        forSourceImages sourceImages: [MPSImage], sourceStates: [MPSState]?, for kernel: MPSKernel,
        suggestedDescriptor inDescriptor: MPSImageDescriptor
    ) -> MPSImageDescriptor
}

extension MPSNNPadding {
    public func label() -> String { "" }
    public func destinationImageDescriptor(
        forSourceImages sourceImages: [MPSImage], sourceStates: [MPSState]?, for kernel: MPSKernel,
        suggestedDescriptor inDescriptor: MPSImageDescriptor
    ) -> MPSImageDescriptor { inDescriptor }
}

public class MPSCNNKernel: MPSKernel {
    public var offset = MPSOffset()
    public var clipRect = MPSRectNoClip
    public var edgeMode = MPSImageEdgeMode.zero
    public var padding: any MPSNNPadding { refuseNetwork(Self.self) }
    public var kernelWidth: Int { refuseNetwork(Self.self) }
    public var kernelHeight: Int { refuseNetwork(Self.self) }
    public var strideInPixelsX: Int { refuseNetwork(Self.self) }
    public var strideInPixelsY: Int { refuseNetwork(Self.self) }
    public override init(device: any MTLDevice) { refuseNetwork(Self.self) }

    public func encode(commandBuffer: any MTLCommandBuffer, sourceImage: MPSImage, destinationImage: MPSImage) {
        refuseNetwork(Self.self)
    }
    public func encode(commandBuffer: any MTLCommandBuffer, sourceImage: MPSImage) -> MPSImage {
        refuseNetwork(Self.self)
    }
}

public class MPSCNNConvolution: MPSCNNKernel {}

public class MPSCNNConvolutionTranspose: MPSCNNKernel {
    public var kernelOffsetX = 0
    public var kernelOffsetY = 0
}

public class MPSNNGraph: MPSKernel {
    public override init(device: any MTLDevice) { refuseNetwork(Self.self) }
    public func encode(to commandBuffer: any MTLCommandBuffer, sourceImages: [MPSImage]) -> MPSImage? {
        refuseNetwork(Self.self)
    }
}
