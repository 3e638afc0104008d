// A backend of a server, twentieth set: a library that is loaded for the models that need it.

extern "C" int runtime_device_count();

namespace {

// known from the start on, as the instances are placed by it
const int devices = runtime_device_count();

} // namespace

extern "C" int backend_execute(int batch)
{
    return batch * devices;
}
