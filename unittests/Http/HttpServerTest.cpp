#include "sandwich/Http/HttpServer.h"
