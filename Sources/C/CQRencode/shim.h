// libqrencode: makes QR codes.
#pragma once
#include <qrencode.h>
