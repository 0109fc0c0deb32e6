final class SoftwareSharedEvent: NSObject {
    var label: String?
}
