final class SoftwareCaptureScope: NSObject, MTLCaptureScope {
    var label: String?
    let commandQueue: (any MTLCommandQueue)?
    var device: any MTLDevice { SoftwareDevice.shared }

    init(queue: (any MTLCommandQueue)?) { commandQueue = queue }

    func begin() {}
    func end() {}
}
