(message (message_name) @type) @def
(service (service_name) @type) @def
(rpc (rpc_name) @function) @def
