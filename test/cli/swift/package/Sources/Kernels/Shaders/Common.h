#pragma once
struct Parameters {
  float factor;
  uint count;
};
