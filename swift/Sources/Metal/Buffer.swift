public protocol MTLBuffer: MTLResource {
    var length: Int { get }
    var gpuAddress: UInt64 { get }
    func contents() -> UnsafeMutableRawPointer
    func didModifyRange(_ range: Range<Int>)
    func addDebugMarker(_ marker: String, range: Range<Int>)
    func removeAllDebugMarkers()
    func makeTexture(descriptor: MTLTextureDescriptor, offset: Int, bytesPerRow: Int) -> (any MTLTexture)?
    func makeTensor(descriptor: MTLTensorDescriptor, offset: Int) throws -> any MTLTensor
}
