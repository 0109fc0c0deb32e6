// The type names of images and data, without the system's table of types.
@_exported import Foundation

public struct UTType: Hashable, Sendable {
    public let identifier: String
    public let preferredFilenameExtension: String?
    public let preferredMIMEType: String?

    private init(_ identifier: String, _ filenameExtension: String?, _ mime: String?) {
        (self.identifier, preferredFilenameExtension, preferredMIMEType) = (identifier, filenameExtension, mime)
    }

    public static let png = UTType("public.png", "png", "image/png")
    public static let jpeg = UTType("public.jpeg", "jpeg", "image/jpeg")
    public static let tiff = UTType("public.tiff", "tiff", "image/tiff")
    public static let gif = UTType("com.compuserve.gif", "gif", "image/gif")
    public static let bmp = UTType("com.microsoft.bmp", "bmp", "image/bmp")
    public static let heic = UTType("public.heic", "heic", "image/heic")
    public static let image = UTType("public.image", nil, nil)
    public static let data = UTType("public.data", nil, nil)
    public static let json = UTType("public.json", "json", "application/json")
    public static let plainText = UTType("public.plain-text", "txt", "text/plain")

    private static let known = [png, jpeg, tiff, gif, bmp, heic, image, data, json, plainText]

    /// Returns nil unless the type is one of the constants.
    public init?(_ identifier: String) {
        guard let type = Self.known.first(where: { $0.identifier == identifier }) else { return nil }
        self = type
    }

    public init?(filenameExtension: String) {
        let name = filenameExtension.lowercased()
        let short = ["jpg": "jpeg", "tif": "tiff"][name] ?? name
        guard let type = Self.known.first(where: { $0.preferredFilenameExtension == short }) else { return nil }
        self = type
    }

    public func conforms(to type: UTType) -> Bool {
        self == type || type == .data || type == .image && preferredMIMEType?.hasPrefix("image/") == true
    }
}
