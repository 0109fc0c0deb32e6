// Sampling of cube textures (MSL 2.9 and 2.10), included in the middle of texel.h. The slices of a cube are its six
// faces, +x, -x, +y, -y, +z, -z. Filters continue across the edges.
static constexpr uint cube_dimensions = 6; // represents cubes, in place of a number of axes

// A face, and a position on it from -1 to 1.
struct FacePosition {
  uint face;
  float s, t;
};

// Returns the face that a direction intersects, which its longest axis determines; of equal ones, z before y before x.
MRT_TEXEL_PART FacePosition face_of(float x, float y, float z) {
  const float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  if (az >= ax && az >= ay) return {z < 0 ? 5u : 4u, (z < 0 ? -x : x) / az, -y / az};
  if (ay >= ax) return {y < 0 ? 3u : 2u, x / ay, (y < 0 ? -z : z) / ay};
  return {x < 0 ? 1u : 0u, (x < 0 ? z : -z) / ax, -y / ax};
}

// The inverse: the direction of a position in the plane of a face, which may be outside the face.
MRT_TEXEL_PART void direction_of(FacePosition place, float *direction) {
  const float s = place.s, t = place.t;
  const float directions[6][3] = {{1, -t, -s}, {-1, -t, s}, {s, 1, t}, {s, -1, -t}, {s, -t, 1}, {-s, -t, -1}};
  for (uint i = 0; i < 3; i++) direction[i] = directions[place.face][i];
}

MRT_TEXEL_PART int clamped_index(float at, int size) {
  const float i = __builtin_floorf((at + 1) * 0.5f * float(size));
  return !(i > 0) ? 0 : i < float(size) ? int(i) : size - 1;
}

// Returns a pixel of a face; beyond an edge, a pixel of the adjacent face.
MRT_TEXEL_PART Texel load_cube(const MrtTexture *texture, uint face, int x, int y, uint slice, uint level,
                               const void *caller) {
  const int size = int(texture->levels[level].width);
  if (x < 0 || y < 0 || x >= size || y >= size) {
    float direction[3];
    direction_of({face, (2 * float(x) + 1) / float(size) - 1, (2 * float(y) + 1) / float(size) - 1}, direction);
    const FacePosition place = face_of(direction[0], direction[1], direction[2]);
    face = place.face;
    x = clamped_index(place.s, size);
    y = clamped_index(place.t, size);
  }
  return load(texture, pixel_at(texture, {uint(x), uint(y), 0, 6 * slice + face, level}), caller);
}

// The four pixels around a position: (x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1). At a corner of the cube only three
// pixels meet; their mean replaces the fourth.
struct Quad {
  Texel pixels[4];
  float x, y; // weights of the second pixel along each axis
};

MRT_TEXEL_PART Quad quad_of(const MrtTexture *texture, const SamplePosition &position, uint settings, uint level,
                            const void *caller) {
  const FacePosition place = face_of(position.at[0], position.at[1], position.at[2]);
  const int size = int(texture->levels[level].width);
  // NaN is treated as the center of a face.
  const float s = place.s == place.s ? place.s : 0, t = place.t == place.t ? place.t : 0;
  const float u = (s + 1) * 0.5f * float(size) - 0.5f, v = (t + 1) * 0.5f * float(size) - 0.5f;
  const int x = int(__builtin_floorf(u)), y = int(__builtin_floorf(v));
  Quad quad = {};
  quad.x = u - float(x);
  quad.y = v - float(y);
  int corner = -1;
  for (int i = 0; i < 4; i++) {
    const int at_x = x + (i & 1), at_y = y + (i >> 1);
    if ((at_x < 0 || at_x >= size) && (at_y < 0 || at_y >= size)) corner = i;
    else
      quad.pixels[i] =
          compared(load_cube(texture, place.face, at_x, at_y, position.slice, level, caller), settings, position);
  }
  for (int i = 0; corner >= 0 && i < 4; i++)
    for (int c = 0; i != corner && c < 4; c++) quad.pixels[corner].f[c] += quad.pixels[i].f[c] / 3;
  return quad;
}

MRT_TEXEL_PART Texel sample_cube(const MrtTexture *texture, uint settings, const SamplePosition &position, uint level,
                                 const void *caller) {
  if (filter_of(settings, position) == Filter::nearest) { // all other filters are linear here
    const FacePosition place = face_of(position.at[0], position.at[1], position.at[2]);
    const int size = int(texture->levels[level].width);
    return compared(load_cube(texture, place.face, clamped_index(place.s, size), clamped_index(place.t, size),
                              position.slice, level, caller),
                    settings, position);
  }
  const Quad quad = quad_of(texture, position, settings, level, caller);
  Texel sum = {};
  for (int i = 0; i < 4; i++) {
    const float weight = (i & 1 ? quad.x : 1 - quad.x) * (i >> 1 ? quad.y : 1 - quad.y);
    for (int c = 0; weight != 0 && c < 4; c++) sum.f[c] += weight * quad.pixels[i].f[c];
  }
  return sum;
}

// Returns the pixels counterclockwise from the lower left one.
MRT_TEXEL_PART void gather_cube(const MrtTexture *texture, const SamplePosition &position, const void *caller,
                                Texel *pixels) {
  SamplePosition plain = position;
  plain.compares = false;
  const Quad quad = quad_of(texture, plain, 0, 0, caller);
  const int order[4] = {2, 3, 1, 0};
  for (int i = 0; i < 4; i++) pixels[i] = quad.pixels[order[i]];
}
