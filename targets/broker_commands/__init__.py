"""The commands that our broker alone has; targets/broker_target/commands.py registers them."""
