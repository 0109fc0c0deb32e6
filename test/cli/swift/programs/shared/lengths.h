#pragma once
#define LENGTH 1000
