import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageStore;
import org.apache.rocketmq.store.ha.autoswitch.AutoSwitchHAService;

/**
 * Starts a broker as BrokerStartup does, on loopback alone.
 *
 * A broker binds its HA port on every address of the machine, and a second remoting port two below its own. Both
 * have no setting. Here the HA port is bound on bindAddress, so that others reach it by addresses of the links of
 * Fencepost with the same port, and the second one is any free port.
 *
 * Source: DefaultHAService.AcceptSocketService and BrokerController.initializeRemotingServer, 5.3.3 and 5.5.0.
 */
public final class Broker {
    private static final String HA_ADDRESS = "fencepost.ha.address";

    public static void main(String[] args) throws Exception {
        BrokerController controller = BrokerStartup.createBrokerController(args);
        bindHa(controller);
        anyPort(controller);
        BrokerStartup.start(controller);
    }

    private static void bindHa(BrokerController controller) throws Exception {
        Bound ha = new Bound();
        set(DefaultMessageStore.class, (DefaultMessageStore) controller.getMessageStore(), "haService", ha);
        Object replicas = controller.getReplicasManager();
        set(replicas.getClass(), replicas, "haService", ha);
    }

    private static void anyPort(BrokerController controller) throws Exception {
        Map<?, ?> servers = (Map<?, ?>) get(BrokerController.class, controller, "remotingServerMap");
        Object fast = servers.get("FAST_REMOTING_SERVER");
        ((NettyServerConfig) get(fast.getClass(), fast, "nettyServerConfig")).setListenPort(0);
    }

    private static Object get(Class<?> owner, Object of, String name) throws Exception {
        Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    private static void set(Class<?> owner, Object of, String name, Object value) throws Exception {
        Field field = owner.getDeclaredField(name);
        field.setAccessible(true);
        field.set(of, value);
    }

    /** The HA service of a controller's broker, whose port is bound on one address. */
    private static final class Bound extends AutoSwitchHAService {
        @Override
        public void init(DefaultMessageStore store) throws java.io.IOException {
            super.init(store);
            String address = System.getProperty(HA_ADDRESS);
            int port = store.getMessageStoreConfig().getHaListenPort();
            try {
                set(AcceptSocketService.class, this.acceptSocketService, "socketAddressListen",
                    new InetSocketAddress(address, port));
            } catch (Exception error) {
                throw new java.io.IOException(HA_ADDRESS + " " + address + ": " + error, error);
            }
        }
    }
}
