/// The size of a grid or a threadgroup.
public struct MTLSize: Sendable {
    public var width: Int
    public var height: Int
    public var depth: Int

    public init() { self.init(width: 0, height: 0, depth: 0) }

    public init(width: Int, height: Int, depth: Int) {
        self.width = width
        self.height = height
        self.depth = depth
    }
}

public func MTLSizeMake(_ width: Int, _ height: Int, _ depth: Int) -> MTLSize {
    MTLSize(width: width, height: height, depth: depth)
}

public struct MTLOrigin: Sendable {
    public var x: Int
    public var y: Int
    public var z: Int

    public init() { self.init(x: 0, y: 0, z: 0) }

    public init(x: Int, y: Int, z: Int) {
        self.x = x
        self.y = y
        self.z = z
    }
}

public func MTLOriginMake(_ x: Int, _ y: Int, _ z: Int) -> MTLOrigin { MTLOrigin(x: x, y: y, z: z) }

public struct MTLRegion: Sendable {
    public var origin: MTLOrigin
    public var size: MTLSize

    public init() { self.init(origin: MTLOrigin(), size: MTLSize()) }

    public init(origin: MTLOrigin, size: MTLSize) {
        self.origin = origin
        self.size = size
    }
}

public func MTLRegionMake1D(_ x: Int, _ width: Int) -> MTLRegion { MTLRegionMake3D(x, 0, 0, width, 1, 1) }

public func MTLRegionMake2D(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> MTLRegion {
    MTLRegionMake3D(x, y, 0, width, height, 1)
}

public func MTLRegionMake3D(_ x: Int, _ y: Int, _ z: Int, _ width: Int, _ height: Int, _ depth: Int) -> MTLRegion {
    MTLRegion(origin: MTLOriginMake(x, y, z), size: MTLSizeMake(width, height, depth))
}

/// The size of a resource in a heap, and the alignment of its offset.
public struct MTLSizeAndAlign: Sendable {
    public var size: Int
    public var align: Int

    public init() { self.init(size: 0, align: 0) }

    public init(size: Int, align: Int) {
        self.size = size
        self.align = align
    }
}

public struct MTLResourceID: Sendable {
    let implementation: UInt64

    public init() { implementation = 0 }

    init(implementation: UInt64) { self.implementation = implementation }
}

/// The three 32-bit counts that `dispatchThreadgroups(indirectBuffer:…)` reads.
public struct MTLDispatchThreadgroupsIndirectArguments: Sendable {
    public var threadgroupsPerGrid: (UInt32, UInt32, UInt32)

    public init() { threadgroupsPerGrid = (0, 0, 0) }

    public init(threadgroupsPerGrid: (UInt32, UInt32, UInt32)) { self.threadgroupsPerGrid = threadgroupsPerGrid }
}
