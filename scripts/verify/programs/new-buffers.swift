// Reads the contents of new buffers by a blit, the only way in private storage.
import Metal

let device = MTLCreateSystemDefaultDevice()!
let queue = device.makeCommandQueue()!
let length = 1 << 20

/// Bytes of a new buffer that are not zero. Its predecessors held ones, so that reused memory shows.
func otherThanZero(_ mode: MTLResourceOptions) -> Int {
    for _ in 0..<8 {
        let used = device.makeBuffer(length: length, options: mode)!
        let commands = queue.makeCommandBuffer()!
        let blit = commands.makeBlitCommandEncoder()!
        blit.fill(buffer: used, range: 0..<length, value: 1)
        blit.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
    }
    let new = device.makeBuffer(length: length, options: mode)!
    let read = device.makeBuffer(length: length, options: .storageModeShared)!
    let commands = queue.makeCommandBuffer()!
    let blit = commands.makeBlitCommandEncoder()!
    blit.copy(from: new, sourceOffset: 0, to: read, destinationOffset: 0, size: length)
    blit.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()
    return UnsafeRawBufferPointer(start: read.contents(), count: length).reduce(0) { $0 + ($1 == 0 ? 0 : 1) }
}

let counts = [otherThanZero(.storageModeShared), otherThanZero(.storageModePrivate)]
print("of \(length) bytes of a new buffer, \(counts[0]) in shared and \(counts[1]) in private storage are not zero")
exit(counts == [0, 0] ? 0 : 1)
