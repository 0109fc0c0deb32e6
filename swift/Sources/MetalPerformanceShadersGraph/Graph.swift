// This MetalPerformanceShadersGraph has only names, so that packages that mention its types compile. Creating an object
// prints a message and ends the program.
@_exported import MetalPerformanceShaders

private func refuseGraph(_ type: String) -> Never {
    fatalError("\(type): MetalPerformanceShadersGraph is not supported on Linux; write the operation as a kernel.")
}

public class MPSGraph: NSObject {
    public override init() { refuseGraph("MPSGraph") }
}

public class MPSGraphDevice: NSObject {
    public init(mtlDevice: any MTLDevice) { refuseGraph("MPSGraphDevice") }
}

/// A buffer that is the input or output of a graph.
public class MPSGraphTensorData: NSObject {
    public init(_ matrix: MPSMatrix) { refuseGraph("MPSGraphTensorData") }
    public init(_ buffer: any MTLBuffer, shape: [NSNumber], dataType: MPSDataType) { refuseGraph("MPSGraphTensorData") }
}

/// A node of a graph.
public class MPSGraphTensor: NSObject {
    override init() { refuseGraph("MPSGraphTensor") }
}
